"""`relay-to-linalg`: lowers `relay` ops (stage 1) to `linalg` on tensors (stage 2)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, FunctionType, ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.utils.hints import isa

from relay.dialects import relay
from relay.dialects.attributes import dtype_of, int_values
from relay.dialects.op import TensorOp, rank, shape, tensor
from relay.dialects.plug_in import blamed, row
from relay.errors import Unsupported
from relay.lowering.call_graph import calls_in
from relay.lowering.linalg import LOWERINGS
from relay.lowering.linalg.elementwise import Group, emit, groups
from relay.lowering.linalg.emitter import Emitter, signless
from relay.lowering.linalg.narrow import refusal
from relay.passes import Pass
from relay.passes.analyses import forget
from relay.target import target_of
from relay.transforms.inlining import inline_calls
from relay.transforms.location import function_of, place
from relay.transforms.one_table import kernel_as_table
from relay.transforms.widening import lowers

CONSTANT = "relay.constant"


@dataclass(frozen=True)
class RelayToLinalg(Pass):
    """Turn `relay` ops into `linalg.generic`, `tensor` and `arith` ops. Every integer type becomes a signless one.
    Elementwise ops of one shape that depend on each other become one `linalg.generic`, in whose body a rescale stays
    one op, `tosa.apply_scale`. `scf.if` and `scf.while` are kept, and their blocks are lowered; ops of `linalg` and
    `tensor` stay as they are. Shapes must be static. Raises Unsupported for an op that has no lowering. If the module's
    target can look up a vector of bytes in a table at once, a lookup of 8-bit codes in a table of 8-bit codes stays a
    separate loop nest. A kernel that computes each code of its result from one 8-bit code and scalar constants becomes
    such a lookup, if it contains a multiplication or a lookup. If the target shuffles vectors, a transpose that turns
    rows into columns stays a separate loop nest."""

    name = "relay-to-linalg"
    requires = ("compiled", "legal", "inference", "layouts")
    establishes = ("linalg",)
    invalidates = ("folded", "kernels", "expanded")
    why = "lowers kernels to linalg.generic"
    tables_apart: bool | None = field(default=None, metadata={"deprecated": True})
    transposes_apart: bool | None = field(default=None, metadata={"deprecated": True})

    def __post_init__(self) -> None:
        for name in ("tables_apart", "transposes_apart"):
            if getattr(self, name) is not None:
                what = f"{self.name}{{{name}=...}} is deprecated: the module's target says it; put attach-target before"
                warnings.warn(what, DeprecationWarning, stacklevel=3)

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        return not any(isinstance(inner, TensorOp) for inner in op.walk())

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp)]:
            check_arguments(function)
        inline_calls(op)
        target = target_of(op)
        tables = bool(target.tables) if self.tables_apart is None else self.tables_apart
        transposes = target.shuffle_bytes > 0 if self.transposes_apart is None else self.transposes_apart
        callers = {function_of(call) for calls in calls_in(op).by_callee.values() for call in calls}
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp)]:
            if tables and function.body.blocks:
                kernel_as_table(function)
            FunctionLowering(function, tables, transposes).run()
            if function in callers:
                forget(op)


class FunctionLowering:
    """Builds a new body beside the old one; values are lowered when they are first used."""

    def __init__(self, function: func.FuncOp, tables_apart: bool, transposes_apart: bool):
        self.function = function
        self.tables_apart, self.transposes_apart = tables_apart, transposes_apart
        self.values: dict[SSAValue, SSAValue] = {}
        self.groups: dict[Operation, Group] = {}

    def run(self) -> None:
        type = self.function.function_type
        if self.function.body.blocks:
            if len(self.function.body.blocks) > 1:
                raise Unsupported(f"@{self.function.sym_name.data}", "has several blocks", "lower control flow first")
            self.lower_body(self.function.body.block)
        self.function.properties["function_type"] = FunctionType.from_lists(
            [signless(t) for t in type.inputs], [signless(t) for t in type.outputs]
        )

    def lower_body(self, old: Block) -> None:
        new = Block(arg_types=[signless(arg.type) for arg in old.args])
        for before, after in zip(old.args, new.args, strict=True):
            after.name_hint = before.name_hint
            after.location = before.location
            self.values[before] = after
        self.emitter = Emitter(new, self.function.location)
        self.lower_ops(old)
        self.function.body.add_block(new)
        self.function.body.detach_block(old)
        old.erase(safe_erase=False)

    def alone(self, op: Operation) -> bool:
        """Whether an elementwise op is not grouped with others."""
        if isinstance(op, relay.TransposeOp):
            return self.transposes_apart and int_values(op.axes)[-1:] != (rank(op.input) - 1,)
        if not self.tables_apart or not isinstance(op, relay.LookupOp):
            return False
        return shape(op.table) == (256,) and dtype_of(tensor(op.table).element_type).itemsize == 1

    def lower_ops(self, block: Block) -> None:
        """Lower the ops of a block in order; constants are lowered when they are first used."""
        ops = list(block.ops)
        for op in ops:
            check(op)
        self.groups |= groups(ops, self.alone)
        for op in ops:
            if op.name != CONSTANT:
                self.lower(op)

    def value(self, old: SSAValue) -> SSAValue:
        """Return the lowered value, which is emitted here if it does not exist yet."""
        if old not in self.values:
            assert isinstance(old.owner, Operation)
            self.lower(old.owner)
        return self.values[old]

    def lower(self, op: Operation) -> None:
        """Emit the op, or its group, once."""
        if op.results and op.results[0] in self.values:
            return
        if (group := self.groups.get(op)) is not None:
            if any(result in self.values for member in group.ops for result in member.results):
                return
            self.values.update(emit(self.emitter.at(group.ops[-1].location), group, self.value))
            return
        operands = [self.value(operand) for operand in op.operands]
        e = (self.emitter.root if op.name == CONSTANT else self.emitter).at(op.location)
        results = self.results(e, op, operands)
        for before, after in zip(op.results, results, strict=True):
            if after.name_hint is None:
                after.name_hint = before.name_hint
            self.values[before] = after

    def results(self, e: Emitter, op: Operation, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Emit an op by itself and return its results. Elementwise ops that become one `linalg.generic` together are a
        `Group`, and are not emitted here."""
        if (lowering := LOWERINGS.get(type(op))) is not None:
            return lowering(e, op, operands)
        if isinstance(op, scf.IfOp | scf.WhileOp):
            return self.control(e, op, operands)
        dialect = op.name.split(".")[0]
        if dialect in ("linalg", "tensor") and op.regions:
            return self.kept(e, op)
        if isinstance(op, TensorOp) and (lowering := row(op, "lowerings")) is not None:
            with blamed(dialect, f"its lowering of {op.name} fails"):
                return lowering(e, op, operands)
        if isinstance(op, TensorOp) or dialect == "byoc" or op.regions:
            hint = "run legalize first" if dialect == "qnn" else ""
            raise Unsupported(place(op), "has no lowering to linalg", hint)
        new = type(op).create(
            operands=operands,
            result_types=[signless(t) for t in op.result_types],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
        )
        new.location = op.location
        e.block.add_op(new)
        return new.results

    def kept(self, e: Emitter, op: Operation) -> Sequence[SSAValue]:
        """Copy an op of `linalg` or `tensor`. Values from outside that it and its body use are emitted before it."""
        for value in from_outside(op):
            self.value(value)
        new = op.clone(self.values)
        e.block.add_op(new)
        return new.results

    def control(self, e: Emitter, op: scf.IfOp | scf.WhileOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Emit a conditional or a loop whose blocks are lowered; values from outside that the blocks use are emitted
        before it."""
        for value in from_outside(op):
            if value.owner.name != CONSTANT:
                self.value(value)
        regions: list[Region] = []
        for region in op.regions:
            blocks = [Block(arg_types=[signless(arg.type) for arg in block.args]) for block in region.blocks]
            for old, block in zip(region.blocks, blocks, strict=True):
                self.values.update(zip(old.args, block.args, strict=True))
                self.emitter = Emitter(block, op.location, e.root)
                self.lower_ops(old)
            regions.append(Region(blocks))
        self.emitter = Emitter(e.block, op.location, e.root)
        types = [signless(type) for type in op.result_types]
        new: scf.IfOp | scf.WhileOp = (
            scf.IfOp(operands[0], types, regions[0], regions[1])
            if isinstance(op, scf.IfOp)
            else scf.WhileOp(operands, types, regions[0], regions[1])
        )
        new.location = op.location
        e.block.add_op(new)
        return new.results


def from_outside(op: Operation) -> list[OpResult]:
    """The results of other ops that an op and the ops in its regions use, in the order of their uses."""
    inside = set(op.walk())
    used = (value for inner in op.walk() for value in inner.operands)
    return [value for value in used if isinstance(value, OpResult) and value.owner not in inside]


DYNAMIC = "give the inputs a static shape, or relay.build a batch=N for tensor<?x...>, or names: shapes={'x': ('n', 4)}"
MOST = 1 << 40
"""The most elements of a tensor; with fewer, addresses do not overflow for any type."""


def check_arguments(function: func.FuncOp) -> None:
    """Raise Unsupported for an argument of a public function with a dynamic shape or too many elements."""
    if function.sym_visibility is not None and function.sym_visibility.data == "private":
        return
    for number, type in enumerate(function.function_type.inputs):
        if (problem := problem_of(type)) is not None:
            hint = function.body.block.args[number].name_hint if function.body.blocks else None
            where = f"argument {number}{f' (%{hint})' if hint else ''} of @{function.sym_name.data}"
            raise Unsupported(where, *problem)


def check(op: Operation) -> None:
    """Raise Unsupported for an op with a dynamic shape, too many elements, or element types that have no lowering."""
    for value in (*op.operands, *op.results):
        if (problem := problem_of(value.type)) is not None:
            raise Unsupported(place(op), *problem)
    if isinstance(op, TensorOp) and not lowers(op):
        types = sorted({str(value.type) for value in (*op.operands, *op.results)})
        raise Unsupported(place(op), f"has no lowering for {', '.join(types)}", "run legalize first")
    if isinstance(op, relay.CastOp) and (problem := refusal(op)) is not None:
        raise Unsupported(place(op), *problem)


def problem_of(type: Attribute) -> tuple[str, str] | None:
    """Return the reason why no memory can hold a tensor of the type, and a hint; None if it can."""
    if not isa(type, TensorType):
        return None
    if DYNAMIC_INDEX in type.get_shape():
        return f"has the dynamic shape {type}", DYNAMIC
    if prod(type.get_shape()) >= MOST:
        return f"has too many elements: {type}", "use a smaller shape, or batch"
    return None
