"""`share-layers`: merges layers that differ only in constants into one kernel before they are scheduled.

`schedule` and later passes depend on some constants: on the clamp of codes and their zero point, since some allow
instructions that saturate, and on the zero points of computed matrices, since some need sums of the matrix's codes.
Kernels that differ in such constants are merged if all of them would be scheduled alike.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import ModuleOp, f32, f64, i8, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter

from relay.dialects.arith import TruncIOp
from relay.lowering.linalg.emitter import clip_of, number
from relay.lowering.math_expand_ops import READ, is_near
from relay.lowering.scheduling.contraction import match_product
from relay.lowering.scheduling.given_constants import constant_of
from relay.lowering.scheduling.saturate import RANGES, match_clamp
from relay.lowering.share_kernels import Arguments, Codes, Numbers, share_alike
from relay.passes import Pass

FACTORS = frozenset({arith.MulfOp.name, math.FmaOp.name, math.CopySignOp.name})
CLIPS = frozenset({arith.MinimumfOp.name, arith.MaximumfOp.name, arith.CmpfOp.name, arith.SelectOp.name})
SATURATED = FACTORS | CLIPS | {arith.AddiOp.name}
EDGES = (0, 128, -128)
"""Zero points that are never merged into a shared kernel's loaded constants: with one of them as a constant, a kernel
that multiplies two computed tensors needs fewer sums of codes than with any other."""
FLAGS: Mapping[Codes, Attribute] = {codes: flags for flags, codes in RANGES.items() if flags is not None}


@dataclass(frozen=True)
class ShareLayers(Pass):
    """Merge kernels that differ only in constants that do not affect their schedules. Layers that were quantized one by
    one have such kernels. The merged kernel loads its constants: each call passes them in a buffer for each type. It is
    scheduled once. Only constants on which no schedule depends may differ: factors, zero points of codes, and the
    bounds of clamps to the whole range of 8-bit codes; `arith.trunci` then has a flag that its operand is a code
    (`overflow<nuw>` for unsigned ones, `overflow<nsw>` for signed ones). A constant that is equal in all calls stays in
    the kernel."""

    name = "share-layers"
    requires = ("bufferized", "expanded")
    invalidates = ()
    opt_level = 1
    why = "schedules kernels that differ in numbers only once"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        share_alike(op, FreeNumbers())


class FreeNumbers(Numbers):
    """Decides which constants may differ between kernels that are merged: those on which no schedule depends."""

    def known(self, op: Operation, index: int, given: Arguments) -> Hashable:
        constant = op.operands[index].owner
        assert isinstance(constant, arith.ConstantOp)
        of_type = constant.result.type in (f32, f64, i32)
        fact = free_of(op, index, number(constant.result), given) if of_type else None
        return constant.value if fact is None else fact

    def codes(self, op: Operation) -> Codes | None:
        block = op.parent
        clamp = match_clamp(block) if op.name in SATURATED and block is not None else None
        return None if clamp is None else (clamp.low, clamp.high)

    def mark_codes(self, block: Block, codes: Codes) -> None:
        end = block.last_op
        narrow = None if end is None else end.operands[0].owner
        assert isinstance(narrow, Operation)
        properties = {"overflowFlags": FLAGS[codes]}
        new = TruncIOp.create(
            operands=narrow.operands, result_types=[i8], properties=properties, location=narrow.location
        )
        Rewriter.replace_op(narrow, new)


def free_of(op: Operation, index: int, value: float | None, given: Arguments) -> tuple[Hashable, ...] | None:
    """Decide whether kernels can be merged although operand `index` of `op`, a constant, differs between them; `value`
    is the constant in one of them, and `given` has the arguments that calls pass. Return None if they cannot be merged,
    else a key that describes the use of the constant (such as the clamp it belongs to): kernels can be merged if their
    keys are equal."""
    block = op.parent
    if block is None or value is None or not isinstance(generic := block.parent_op(), linalg.GenericOp):
        return None
    if op.name in FACTORS:
        powers = any(isinstance(each.operation, math.ExpOp) for each in op.results[0].uses)
        return None if powers or any(is_near(value, each) for each in READ) else clamped(block)
    if op.name in CLIPS:
        return clamped(block) if is_clip(op) else None
    if index != 1:
        return None
    if isinstance(op, arith.AddiOp):
        found = clamped(block)
        alone = found == ("clamp", None) and isinstance(op.lhs.owner, Operation) and op.lhs.owner.name == "arith.fptosi"
        return found if alone or found is not None and found[1] is not None and zero_of(block) is op else None
    if isinstance(op, arith.SubiOp):
        weights = any(computed(operand, given) is None for operand in generic.inputs)
        return None if weights or value in EDGES or match_product(block) is None else ("zero point",)
    return None


def clamped(block: Block) -> tuple[Hashable, ...] | None:
    """Return a key that describes the clamp at the end of a body: `("clamp", None)` if there is none, `("clamp", (low,
    high))` if it clamps to the whole range of an 8-bit type, with a zero point that is 0 or a constant in this range.
    Return None for any other clamp, since kernels that end in it are not merged."""
    found = match_clamp(block)
    if found is None:
        return ("clamp", None)
    codes = found.low, found.high
    fits = isinstance(found.zero, int) and (found.zero == 0 or codes[0] <= found.zero <= codes[1])
    return ("clamp", codes) if codes in FLAGS and fits else None


def is_clip(op: Operation) -> bool:
    """Whether the op is part of a clip between two constants."""
    while not isinstance(op, arith.MinimumfOp):
        users = [use.operation for result in op.results for use in result.uses]
        if op.name not in CLIPS or len(users) != 1:
            return False
        op = users[0]
    return clip_of(op) is not None


def zero_of(block: Block) -> Operation | None:
    """Return the addition of the zero point at the end of a body that clamps codes, else None."""
    end = block.last_op
    narrow = None if end is None else end.operands[0].owner
    added = narrow.operands[0].owner if isinstance(narrow, Operation) else None
    return added if isinstance(added, arith.AddiOp) else None


def computed(value: SSAValue, given: Arguments) -> SSAValue | None:
    """Return the value; None if it comes from an argument of the function, directly or by views, for which a call
    passes a constant. `given`: for each argument, the values that calls pass."""
    at = value
    while isinstance(owner := at.owner, Operation) and owner.operands:
        at = owner.operands[0]
    return None if isinstance(at, BlockArgument) and any(constant_of(each) for each in given.get(at, ())) else value
