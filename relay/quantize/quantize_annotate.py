"""The pass `quantize-annotate`: marks the ops to quantize."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from relay.byoc.regions import constant_of
from relay.dialects import relay
from relay.errors import InvalidArgument
from relay.passes import Pass
from relay.quantize import marks
from relay.quantize.layers import Layer, layers_of, matches
from relay.quantize.observing import observed, places
from relay.quantize.parameters import check_dtype
from relay.quantize.rules import data_operands, fixed, fused_clamp, mean_of, refusal, same_scale

WHERE = "quantize-annotate"


@dataclass(frozen=True)
class QuantizeAnnotate(Pass):
    """Mark the float ops of `@main` that are to be computed in integers. All ops that have an integer form are marked,
    unless an option leaves them out.

    `from_layer=n` leaves all ops before layer n in float; layers are convolutions and products with constant weights,
    counted from 0 in program order. `skip_layers` leaves out layers by index, `skip_names` ops by patterns of their
    names (of the tensor in the model's file, of the weights, of the result), `skip_ops` kinds of ops (`nn.softmax`).
    `keep_float` names regions `first..last`, by layer index or pattern: all ops from first to last stay float. Ops that
    are not connected to a quantized layer stay float, too. `dtype` is that of quantized activations: `int8`, `uint8`,
    or `int16` (weights are 8-bit in any case; biases of `int16` are 64-bit).
    """

    name: ClassVar[str] = WHERE
    invalidates = ()
    why = "marks the ops to quantize"
    from_layer: int = 0
    skip_layers: tuple[int, ...] = ()
    skip_names: tuple[str, ...] = ()
    skip_ops: tuple[str, ...] = ()
    keep_float: tuple[str, ...] = ()
    dtype: str = "int8"

    @classmethod
    def holds(cls, op: ModuleOp) -> bool:
        """Whether `@main` has a mark of `quantize-annotate`: an op that is to be computed in integers."""
        return bool(observed(marks.main_of(op, cls.name)))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_dtype(self.dtype, self.name)
        function = marks.main_of(op, self.name)
        marks.clear(function)
        layers = layers_of(function)
        chosen = choose(function, layers, self.left_out(function, layers), self.dtype)
        if chosen:
            function.attributes[marks.DTYPE] = StringAttr(self.dtype)
        for each in chosen:
            marks.write(each, integer=UnitAttr())
        anchors: dict[Operation, Layer] = {layer.anchor: layer for layer in layers}
        name_values(function, chosen, anchors)

    def left_out(self, function: FuncOp, layers: list[Layer]) -> set[Operation]:
        """The ops that stay float. Raises InvalidArgument for a layer index, pattern or kind that matches nothing."""
        ops = list(function.body.block.ops)
        if self.from_layer < 0:
            raise InvalidArgument(WHERE, f"from_layer is {self.from_layer}", "count layers from 0")
        found: set[Operation] = set()
        if self.from_layer:
            beyond = self.from_layer >= len(layers)
            found.update(ops if beyond else ops[: ops.index(layers[self.from_layer].anchor)])
        for index in self.skip_layers:
            found.update(_layer(index, layers, "skip_layers").ops)
        for pattern in self.skip_names:
            found.update(_named(pattern, ops, "skip_names"))
        for kind in self.skip_ops:
            same = [op for op in ops if kind and f".{op.name}".endswith(f".{kind}")]
            if not same:
                raise InvalidArgument(f"{WHERE}: skip_ops", f"there is no op {kind}", _kinds(ops))
            found.update(same)
        for region in self.keep_float:
            found.update(_region(region, ops, layers))
        for layer in layers:
            if not found.isdisjoint(layer.ops):
                found.update(layer.ops)
        for op in ops:
            if (division := mean_of(op)) is not None and not found.isdisjoint((op, division)):
                found.update((op, division))
        return found


def _kinds(ops: Sequence[Operation]) -> str:
    return f"the module has {', '.join(sorted({op.name for op in ops if op.results}))}"


def _layer(index: int, layers: list[Layer], option: str) -> Layer:
    if not 0 <= index < len(layers):
        raise InvalidArgument(f"{WHERE}: {option}", f"there is no layer {index}", f"there are {len(layers)}, from 0")
    return layers[index]


def _named(pattern: str, ops: Sequence[Operation], option: str) -> list[Operation]:
    found = [op for op in ops if matches(op, pattern)]
    if not found:
        hint = "names are those of tensors in the model's file, of weights and of results; * stands for any characters"
        raise InvalidArgument(f"{WHERE}: {option}", f"no op is named {pattern!r}", hint)
    return found


def _region(region: str, ops: list[Operation], layers: list[Layer]) -> list[Operation]:
    """All ops from the first match of the region's start to the last match of its end (`start..end`)."""
    first, dots, last = region.partition("..")
    begin, end = (_end(name, ops, layers) for name in (first, last if dots else first))
    start, stop = min(map(ops.index, begin)), max(map(ops.index, end))
    if start > stop:
        raise InvalidArgument(f"{WHERE}: keep_float", f"{region!r} ends before it starts", "swap its ends")
    return ops[start : stop + 1]


def _end(name: str, ops: list[Operation], layers: list[Layer]) -> list[Operation]:
    if name.isdecimal():
        return _layer(int(name), layers, "keep_float").ops
    return _named(name, ops, "keep_float")


def choose(function: FuncOp, layers: list[Layer], left_out: set[Operation], dtype: str) -> list[Operation]:
    """The ops that are to compute on quantized values, in program order."""
    anchors: dict[Operation, Layer] = {layer.anchor: layer for layer in layers}
    inside = {op for layer in layers for op in layer.ops[1:]}
    chosen: list[Operation] = []
    for op in function.body.block.ops:
        if op in inside or op in left_out or op in chosen:
            continue
        if op in anchors:
            chosen += [part for part in anchors[op].ops if part.parent is op.parent]
        elif not isinstance(op, relay.ConstantOp) and refusal(op, dtype) is None:
            chosen.append(op)
            if (division := mean_of(op)) is not None:
                chosen.append(division)
    kept = connected(set(chosen), set(anchors))
    return [op for op in function.body.block.ops if op in kept]


def connected(chosen: set[Operation], anchors: set[Operation]) -> set[Operation]:
    """The chosen ops that a path through chosen ops connects with a layer."""
    found: set[Operation] = set()
    reached: list[Operation] = [op for op in chosen if op in anchors]
    while reached:
        op = reached.pop()
        if op in found:
            continue
        found.add(op)
        near = [value.owner for value in op.operands]
        near += [use.operation for result in op.results for use in result.uses]
        reached += [other for other in near if isinstance(other, Operation) and other in chosen]
    return found


def name_values(function: FuncOp, chosen: list[Operation], layers: dict[Operation, Layer]) -> None:
    """Name the values that are to be quantized, and group those that share their scale."""
    names = {value: place for place, value in places(function)}
    groups = Groups()
    parts = {op: [part for part in insides(op, layers) if marks.integer(part)] for op in chosen}
    inner = {part for found in parts.values() for part in found}
    for op in chosen:
        if op in inner:
            continue
        values = list(data_operands(op))
        last = [op, *parts[op]][-1]
        if not isinstance(op, relay.ArgOp):
            values.append(last.results[0])
            if fixed(op):
                groups.fix(last.results[0])
        for value in values:
            groups.add(value)
            marks.write_value(value, value=StringAttr(names[value]))
        for value in same_scale(op):
            groups.join(value, op.results[0])
    for value in groups.members:
        first = groups.first(value)
        marks.write_value(value, group=StringAttr(names[first]))
        if first in groups.fixed:
            marks.write_value(value, fixed=UnitAttr())


def insides(op: Operation, layers: dict[Operation, Layer]) -> Iterable[Operation]:
    """The ops after `op` that are computed together with it: the bias and clamp of a layer, the division of a mean, the
    clamp after a sum."""
    if (layer := layers.get(op)) is not None:
        return layer.ops[1:]
    return [part for part in (mean_of(op), fused_clamp(op)) if part is not None]


class Groups:
    """Groups of values that share their scale. A group whose scale the specification fixes is not merged with others;
    values are requantized between them."""

    def __init__(self) -> None:
        self.members: dict[SSAValue, SSAValue] = {}
        self.fixed: set[SSAValue] = set()

    def add(self, value: SSAValue) -> None:
        assert constant_of(value) is None or isinstance(value, BlockArgument)
        self.members.setdefault(value, value)

    def first(self, value: SSAValue) -> SSAValue:
        while self.members[value] is not value:
            value = self.members[value]
        return value

    def fix(self, value: SSAValue) -> None:
        self.add(value)
        self.fixed.add(self.first(value))

    def join(self, operand: SSAValue, result: SSAValue) -> None:
        """Put operand and result into one group, unless only the result's scale is fixed, or the operand's scale is
        fixed and the result shares its scale with other operands, too."""
        a, b = self.first(operand), self.first(result)
        alone = sum(1 for _ in same_scale(result.owner)) == 1 if isinstance(result.owner, Operation) else False
        if a is b or (a in self.fixed and not alone) or (b in self.fixed and a not in self.fixed):
            return
        self.members[b] = a
        if b in self.fixed:
            self.fixed.add(a)
