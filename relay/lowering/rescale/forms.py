"""Writing a proved form: `tosa.apply_scale` becomes a fused multiply-add and a rounding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, Float32Type, Float64Type, FunctionType, TensorType, i32
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.dialects.linalg.ops import GenericOp
from xdsl.dialects.tosa import RoundingMode
from xdsl.ir import BlockArgument, Operation, Region, SSAValue

from relay.dialects.attributes import Array, elements, to_numpy
from relay.dialects.tosa import ApplyScaleOp
from relay.lowering.linalg.emitter import Emitter, dims, element
from relay.lowering.rescale.proof import Form, prove32, prove64
from relay.lowering.rescale.values import Calls, enumerate_codes, scalars

FULL = (-(2**31), 2**31 - 1)
WIDEST = 4096
"""Steps that a proof may have to look at per channel."""

SAMPLE = 32
"""Channels tried first: if float32 fails on one of them, it is not tried on all."""


@dataclass(frozen=True)
class Found:
    """A form of one precision for every call of the function."""

    bits: int
    forms: list[Form]

    @property
    def channels(self) -> int:
        return sum(form.scale.size for form in self.forms)


def bounds(op: ApplyScaleOp) -> tuple[int, int]:
    """The range outside of which the rescaled value does not matter: what is added to it and clamped right after."""
    value, added, low, high = op.output, 0, *FULL
    while value.has_one_use():
        user = next(iter(value.uses)).operation
        if len(user.operands) != 2:
            break
        other = next((v for v in user.operands if v is not value), None)
        if other is None or not isinstance(other.owner, arith.ConstantOp):
            break
        constant = int(to_numpy(other.owner.value))
        if isinstance(user, arith.AddiOp) and (low, high) == FULL:
            added += constant
        elif isinstance(user, arith.MaxSIOp):
            low = max(low, constant - added)
        elif isinstance(user, arith.MinSIOp):
            high = min(high, constant - added)
        else:
            break
        value = user.results[0]
    return low, high


def find(op: ApplyScaleOp, calls: Calls) -> Found | None:
    """The cheapest float form that is proved for every channel of every call; None if there is none."""
    if op.rounding_mode.data != RoundingMode.DOUBLE_ROUND:
        return None
    multipliers, shifts = scalars(op.multiplier, calls), scalars(op.shift, calls)
    if multipliers is None or shifts is None:
        return None
    count = max(len(multipliers), len(shifts))
    pairs = [np.broadcast_arrays(_at(multipliers, i), _at(shifts, i)) for i in range(count)]
    low, high = bounds(op)
    values = enumerate_codes(op.value)
    if values is None and high - low > WIDEST:
        return None
    first_m, first_s = (np.concatenate([p[k][:SAMPLE] for p in pairs]) for k in (0, 1))
    for bits, prove in ((32, prove32), (64, prove64)):
        if prove(first_m, first_s, low, high, values) is None:
            continue
        known: dict[bytes, Form | None] = {}
        for m, s in pairs:
            key = m.tobytes() + s.tobytes()
            if key not in known:
                known[key] = prove(np.ascontiguousarray(m), np.ascontiguousarray(s), low, high, values)
        forms = [known[m.tobytes() + s.tobytes()] for m, s in pairs]
        proved = [form for form in forms if form is not None]
        if len(proved) == len(forms):
            return Found(bits, proved)
    return None


def _at(items: Sequence[Array], number: int) -> Array:
    return items[number if len(items) > 1 else 0]


def rewrite(op: ApplyScaleOp, found: Found, constants: Emitter, calls: dict[str, list[CallOp]]) -> None:
    """tosa.apply_scale %x, %m, %s  =>  fptosi(roundeven(fma(f, scale, copysign(offset, f)))), f = sitofp %x"""
    type = Float32Type() if found.bits == 32 else Float64Type()
    dtype = np.float32 if found.bits == 32 else np.float64
    columns = [[np.asarray(getattr(form, part), dtype) for form in found.forms] for part in ("scale", "offset")]
    numbers: list[SSAValue] = []
    for column in columns:
        if all(array.size == 1 and array[0] == column[0][0] for array in column):
            numbers.append(constants.constant(float(column[0][0]), type))
        else:
            block_argument = channel_operand(op, column, calls)
            numbers.append(block_argument)
    block = op.parent_block()
    assert block is not None
    e = Emitter(block, op.location, constants, op)
    value = e(arith.SIToFPOp(op.value, type))
    offset = e(math.CopySignOp(numbers[1], value))
    total = e(math.FmaOp(value, numbers[0], offset))
    result = e(arith.FPToSIOp(e(math.RoundEvenOp(total)), i32))
    op.output.replace_all_uses_with(result)
    old = [op.shift, op.multiplier]
    op.detach()
    op.erase()
    erase_unused(old)


def channel_operand(op: ApplyScaleOp, column: Sequence[Array], calls: dict[str, list[CallOp]]) -> SSAValue:
    """A new input of the generic that reads per-channel numbers as the multiplier (or shift) is read."""
    generic = op.parent_op()
    assert isinstance(generic, GenericOp)
    source = channel_source(op, generic)
    old = generic.inputs[source.index]
    tensor = new_tensor(old, column, calls, op)
    block = generic.body.block
    position = len(generic.inputs)
    argument = block.insert_arg(element(tensor), position)
    maps = list(generic.indexing_maps.data)
    maps.insert(position, AffineMapAttr(maps[source.index].data))
    rebuild(generic, [*generic.inputs, tensor], maps)
    return argument


def channel_source(op: ApplyScaleOp, generic: GenericOp) -> BlockArgument:
    """The body's argument that the multiplier or the shift is computed from."""
    stack: list[SSAValue] = [op.multiplier, op.shift]
    while stack:
        value = stack.pop(0)
        if isinstance(value, BlockArgument) and value.index < len(generic.inputs):
            return value
        if isinstance(value.owner, Operation):
            stack += value.owner.operands
    raise ValueError("neither multiplier nor shift goes with channels")


def new_tensor(old: SSAValue, column: Sequence[Array], calls: dict[str, list[CallOp]], op: Operation) -> SSAValue:
    """The numbers as a tensor beside the old one: a constant, or a new argument that every caller gives."""
    if not isinstance(old, BlockArgument):
        constant = constant_before(column[0].reshape(dims(old)), old, op)
        owner = old.owner
        assert isinstance(owner, Operation) and owner.parent is not None
        owner.parent.insert_op_after(constant, owner)
        return constant.result
    function = old.owner.parent_op()
    assert isinstance(function, FuncOp)
    name = function.sym_name.data
    block = function.body.block
    shape = dims(old)
    renewed: list[CallOp] = []
    for call, array in zip(calls[name], [_at(column, i) for i in range(len(calls[name]))], strict=True):
        constant = constant_before(array.reshape(shape), call.arguments[old.index], call)
        parent = call.parent
        assert parent is not None
        parent.insert_op_before(constant, call)
        call.operands = [*call.operands, constant.result]
        renewed.append(call)
    argument = block.insert_arg(TensorType(element_of(column[0]), shape), len(block.args))
    refresh(function)
    calls[name] = renewed
    return argument


def element_of(array: Array) -> Float32Type | Float64Type:
    return Float32Type() if array.dtype == np.float32 else Float64Type()


def constant_before(array: Array, beside: SSAValue, op: Operation) -> arith.ConstantOp:
    """A constant of the numbers, named after the one it stands beside."""
    name = f"{beside.name_hint or 'scale'}.f{8 * array.itemsize}"
    attr = elements(np.ascontiguousarray(array), label=name).resource()
    constant = arith.ConstantOp.create(result_types=[attr.type], properties={"value": attr}, location=op.location)
    constant.result.name_hint = name
    return constant


def refresh(function: FuncOp) -> None:
    """Make the function's type that of its block."""
    outputs = list(function.function_type.outputs)
    function.properties["function_type"] = FunctionType.from_lists([a.type for a in function.body.block.args], outputs)


def rebuild(generic: GenericOp, inputs: Sequence[SSAValue], maps: Sequence[AffineMapAttr]) -> None:
    """Give the generic other inputs; its body has the arguments already."""
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
    parent = generic.parent
    assert parent is not None
    parent.insert_op_before(new, generic)
    for before, after in zip(generic.results, new.results, strict=True):
        before.replace_all_uses_with(after)
        after.name_hint = before.name_hint
    generic.detach()
    generic.erase()


def drop_unused(function: FuncOp, calls: Sequence[CallOp]) -> None:
    """Remove what the forms left unread: inputs of generics, and arguments of a kernel with what callers pass."""
    for generic in [op for op in function.walk() if isinstance(op, GenericOp)]:
        if any(kind.data is not IteratorType.PARALLEL for kind in generic.iterator_types):
            continue  # an input that is not read may give the size of a reduction
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
    refresh(function)


def erase_unused(values: list[SSAValue]) -> None:
    """Erase the arithmetic that computed these values, as far as nothing else uses it."""
    while values:
        owner = values.pop().owner
        if not isinstance(owner, Operation) or owner.name not in ("arith.trunci", "arith.subi"):
            continue
        if not any(result.uses for result in owner.results):
            values += owner.operands
            owner.detach()
            owner.erase()
