"""Rewrites `tosa.apply_scale` to a fused multiply-add of floats and a conversion to integers, where these are proved to
give the same results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, Float32Type, Float64Type, TensorType, f32, i32
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.linalg.ops import GenericOp
from xdsl.dialects.llvm import CallIntrinsicOp
from xdsl.ir import Attribute, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from relay.dialects.arith import TruncIOp
from relay.dialects.attributes import Array, element_type, elements
from relay.dialects.tosa import ApplyScaleOp
from relay.lowering.call_graph import CallGraph
from relay.lowering.linalg.emitter import Emitter, dims, element
from relay.lowering.rescale.find import Found
from relay.lowering.rescale.proof import Form
from relay.lowering.scheduling.affine import is_parallel
from relay.transforms.dead_ops import erase_dead

ARITHMETIC = arith.TruncIOp | TruncIOp | arith.SubiOp | arith.ShLIOp
"""The ops that compute multipliers and shifts, without constants, which are shared."""
ROUNDING = 11
"""The rounding operand of x86's intrinsic: towards zero, no exceptions."""
SMALL = 2.0**22
"""`nearest_by_addition` converts a float to an integer if its magnitude is below this bound: the float plus `MIDDLE`
then lies between 2^23 and 2^24, where neighbouring floats are 1 apart."""
MIDDLE = 1.5 * 2.0**23


def rewrite(op: ApplyScaleOp, found: Found, constants: Emitter, calls: CallGraph, toward_zero: str | None) -> None:
    """tosa.apply_scale %x, %m, %s => fptosi(fma(f, scale, copysign(offset, f))), f = sitofp %x

    The constants are those of `found.forms` (see `Form`). If the scale is a sum `scale + rest`,
    `fma(f, rest, copysign(offset, f))` replaces the offset; if a form is not `signed`, the offset has no copysign.
    `toward_zero`: the target's multiply-add that rounds towards zero (an LLVM intrinsic).
    """
    form = found.forms[0]
    type = Float64Type() if form.name == "f64" else Float32Type()
    numbers: list[SSAValue] = []
    for column in zip(*(form.columns for form in found.forms), strict=True):
        numbers.append(constant_or_channels(op, column, type, constants, calls))
    e = constants.in_front_of(op)
    total = line(e, e(arith.SIToFPOp(op.value, type)), numbers, form, toward_zero)
    op.output.replace_all_uses_with(e(arith.FPToSIOp(total, i32)))
    erase_scales(op)


def line(e: Emitter, value: SSAValue, numbers: Sequence[SSAValue], form: Form, toward_zero: str | None) -> SSAValue:
    """Return the float that a form truncates. `numbers`: the values of the arrays in `Form.columns` for the channel."""
    total = e(math.CopySignOp(numbers[1], value)) if form.signed else numbers[1]
    for scale in reversed([numbers[0], *numbers[2:]]):
        if scale is numbers[0] and form.toward_zero:
            assert toward_zero is not None
            rounding = [e.constant(ROUNDING, i32)] if toward_zero.startswith("llvm.x86.") else []
            total = e(CallIntrinsicOp(toward_zero, [value, scale, total, *rounding], [value.type]))
        else:
            total = e(math.FmaOp(value, scale, total))
    return total


def nearest_by_addition(e: Emitter, total: SSAValue) -> SSAValue:
    """Return roundeven(total) as i32 for magnitudes below `SMALL`: total + 1.5 2^23 is rounded to an integer, which is
    in the lowest bits of the sum. A processor of a GPU converts 16 numbers in a clock cycle, and adds 128."""
    shifted = e(arith.BitcastOp(e(arith.AddfOp(total, e.constant(MIDDLE, f32))), i32))
    return e(arith.SubiOp(shifted, e.constant(int(np.float32(MIDDLE).view(np.int32)), i32)))


def constant_or_channels(
    op: Operation, column: Sequence[Array], type: Attribute, constants: Emitter, calls: CallGraph
) -> SSAValue:
    """Return a constant if all numbers in `column` are equal, else an operand with one number per channel, which has
    the shape of the constants that `op` takes after its first operand."""
    first = column[0][0]
    if all(bool((array == first).all()) for array in column):
        return constants.constant(first.item(), type)
    return channel_operand(op, op.operands[1:], column, calls)


def channel_operand(op: Operation, given: Sequence[SSAValue], column: Sequence[Array], calls: CallGraph) -> SSAValue:
    """Add an input with the per-channel numbers `column` to the `linalg.generic` that contains `op`, and return the
    block argument that stands for it. Its shape and indexing map are copied from an existing input: the one from which
    the scalars `given` are computed."""
    generic = op.parent_op()
    assert isinstance(generic, GenericOp)
    source = channel_source(given, generic)
    old = generic.inputs[source.index]
    tensor = new_tensor(old, column, calls, op)
    block = generic.body.block
    position = len(generic.inputs)
    argument = block.insert_arg(element(tensor), position)
    maps = list(generic.indexing_maps.data)
    maps.insert(position, AffineMapAttr(maps[source.index].data))
    rebuild(generic, [*generic.inputs, tensor], maps)
    return argument


def channel_source(given: Sequence[SSAValue], generic: GenericOp) -> BlockArgument:
    """Search backwards from the scalars `given`, which are values in the body of a `linalg.generic`, for a block
    argument that stands for one of its inputs, and return it. Raises ValueError if no scalar depends on an input."""
    stack = [*given]
    while stack:
        value = stack.pop(0)
        if isinstance(value, BlockArgument) and value.index < len(generic.inputs):
            return value
        if isinstance(value.owner, Operation):
            stack += value.owner.operands
    raise ValueError("no number goes with channels")


def new_tensor(old: SSAValue, column: Sequence[Array], calls: CallGraph, op: Operation) -> SSAValue:
    """Return the numbers of `column`, an array for each call, as a tensor with the shape of `old`: a constant if `old`
    is one, else a new argument that every caller passes."""
    if not isinstance(old, BlockArgument):
        constant = constant_before(column[0].reshape(dims(old)), old, op)
        owner = old.owner
        assert isinstance(owner, Operation)
        Rewriter.insert_op(constant, InsertPoint.after(owner))
        return constant.result
    function = old.owner.parent_op()
    assert isinstance(function, FuncOp)
    block = function.body.block
    shape = dims(old)
    for number, call in enumerate(calls.of(function)):
        array = column[number if len(column) > 1 else 0]
        constant = constant_before(array.reshape(shape), call.arguments[old.index], call)
        Rewriter.insert_op(constant, InsertPoint.before(call))
        call.operands = [*call.operands, constant.result]
    argument = block.insert_arg(TensorType(element_type(column[0].dtype), shape), len(block.args))
    function.update_function_type()
    return argument


def constant_before(array: Array, beside: SSAValue, op: Operation) -> arith.ConstantOp:
    """Return a new `arith.constant` with the contents of `array`, which the caller inserts. It is named after the value
    `beside` and has the location of `op`."""
    name = f"{beside.name_hint or 'scale'}.{array.dtype.kind}{8 * array.itemsize}"
    attr = elements(np.ascontiguousarray(array), label=name).resource()
    constant = arith.ConstantOp.create(result_types=[attr.type], properties={"value": attr}, location=op.location)
    constant.result.name_hint = name
    return constant


def rebuild(generic: GenericOp, inputs: Sequence[SSAValue], maps: Sequence[AffineMapAttr]) -> None:
    """Replace a `linalg.generic` by one with other inputs and maps. The body is moved, and must already have an
    argument for each new input."""
    region = Region()
    generic.body.move_blocks(region)
    new = GenericOp(
        list(inputs),
        list(generic.outputs),
        region,
        ArrayAttr(maps),
        generic.iterator_types,
        [r.type for r in generic.results],
    )
    new.location = generic.location
    Rewriter.insert_op(new, InsertPoint.before(generic))
    Rewriter.replace_op(generic, [], new.results)


def drop_unused(function: FuncOp, calls: Sequence[CallOp]) -> None:
    """Remove what is no longer read after rescales were replaced by other arithmetic: inputs of elementwise
    `linalg.generic` ops, and, for a private function, arguments, which callers then no longer pass."""
    for generic in [op for op in function.walk() if isinstance(op, GenericOp)]:
        if not is_parallel(generic):
            continue  # an unread input may determine the size of a reduction
        block = generic.body.block
        kept = [i for i in range(len(generic.inputs)) if any(block.args[i].uses)]
        if len(kept) < len(generic.inputs):
            inputs = [generic.inputs[i] for i in kept]
            maps = [m for i, m in enumerate(generic.indexing_maps.data) if i in kept or i >= len(generic.inputs)]
            for index in reversed(range(len(generic.inputs))):
                if index not in kept:
                    block.erase_arg(block.args[index])
            rebuild(generic, inputs, maps)
    if function.sym_visibility is None:
        return
    block = function.body.block
    for argument in reversed(block.args):
        if any(argument.uses):
            continue
        for call in calls:
            operands = list(call.operands)
            del operands[argument.index]
            call.operands = operands
        block.erase_arg(argument)
    function.update_function_type()


def erase_scales(*ops: Operation) -> None:
    """Erase `ops`: rescales that were replaced, and the additions between them. Each op must come before the ops whose
    results it uses. The arithmetic that computed their operands, such as multipliers and shifts, is erased, too, if
    nothing else uses it."""
    for op in ops:
        operands = [*op.operands]
        Rewriter.erase_op(op)
        owners = [value.owner for value in operands if value.owner not in ops]
        erase_dead([owner for owner in owners if isinstance(owner, Operation)], ARITHMETIC)
