"""The user's choice of ops that stay in float: the first layers, single layers, ops by name or by kind, and ranges of
ops from one layer or name to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from relay.errors import InvalidArgument
from relay.quantize.layers import Layer, matches
from relay.quantize.rules import mean_of

WHERE = "quantize-annotate"


@dataclass(frozen=True, slots=True)
class Choice:
    """The options of `QuantizeAnnotate` that select ops to stay in float."""

    from_layer: int = 0
    skip_layers: Sequence[int] = ()
    skip_names: Sequence[str] = ()
    skip_ops: Sequence[str] = ()
    keep_float: Sequence[str] = ()

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
