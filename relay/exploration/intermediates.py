"""Access to the values between the ops and kernels of `@main`: return them for comparison, or replace them by given
ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.hints import isa

from relay import signature
from relay.dialects.attributes import dtype_of
from relay.dialects.source import words
from relay.module import IRModule
from relay.signature import TensorInfo
from relay.transforms.location import node_of


@dataclass(frozen=True)
class Point:
    """A value that an op or a kernel call in `@main` computes."""

    name: str
    """The value's name hint, which is the tensor's name in the source model where there is one; may be empty."""
    type: TensorType[Attribute]
    op: str
    """The called kernel (`@conv2d_0`), or the op's name."""
    operators: tuple[str, ...]
    """The operators of the source model that the op or kernel computes: `operator 3 ADD 'x' (model.tflite:3:0)`."""
    output: int
    """The index of the value in the results of the observed `@main`."""
    node: int = -1
    """The number of the operator in the source model; -1 if it is unknown."""

    def __str__(self) -> str:
        source = " with ".join(self.operators)
        return f"{source} ({self.op})" if source else f"{self.op}{f' %{self.name}' if self.name else ''}"


def observed(mod: IRModule, whole: bool = False) -> tuple[IRModule, list[Point]]:
    """Return a clone whose `@main` returns, after its own results, the tensor that each of its ops computes; and those
    values in the order of execution. Values inside control flow are left out. If `whole`, values that are only used by
    ops of the same operator of the source model are left out, too."""
    clone = mod.clone()
    return clone, _observe(clone, whole)


def _observe(mod: IRModule, whole: bool = False) -> list[Point]:
    function = mod["main"]
    assert isinstance(end := function.body.block.last_op, ReturnOp)
    inputs, outputs = signature.read(function)
    returned, points = list(end.arguments), list[Point]()
    for value, op, type in values_of(function):
        if whole and all(node_of(use.operation) == node_of(op) for use in value.uses):
            continue
        if value not in returned:
            returned.append(value)
            outputs.append(described(f"intermediate {len(points)}", type, "output"))
        what = f"@{op.callee.string_value()}" if isinstance(op, CallOp) else op.name
        points.append(
            Point(value.name_hint or "", type, what, operators_of(mod, op), returned.index(value), node_of(op))
        )
    end.operands = returned
    function.update_function_type()
    signature.write(function, inputs, outputs)
    return points


def values_of(function: FuncOp) -> Iterator[tuple[SSAValue, Operation, TensorType[Attribute]]]:
    """Yield the tensors that the function's ops compute from operands, with op and type, in the order of execution;
    constants are left out."""
    for op in function.body.block.ops:
        for value in op.results if op.operands else ():
            if isa(type := value.type, TensorType[Attribute]):
                yield value, op, type


def described(name: str, type: TensorType[Attribute], kind: str) -> TensorInfo:
    """The signature entry of an argument or a result of `@main` with this name and type."""
    return TensorInfo(name, type.get_shape(), dtype_of(type.element_type), kind)


def operators_of(mod: IRModule, op: Operation) -> tuple[str, ...]:
    """The model's operators that an op computes, as the texts of source locations: the op's own location and, if it is
    the only call of a kernel, those of the ops in the kernel."""
    places = [words(op.location)]
    if isinstance(op, CallOp) and (kernel := mod.functions.get(name := op.callee.string_value())) is not None:
        calls = [other for other in mod.op.walk() if isinstance(other, CallOp) and other.callee.string_value() == name]
        if len(calls) == 1 and kernel.body.blocks:
            places += [words(inner.location) for inner in kernel.body.block.ops if inner.operands]
    return tuple(dict.fromkeys(filter(None, places)))


@dataclass(frozen=True)
class Pair:
    """A value that exists both in the module before a pass and in the module after it: its indices in the two modules'
    lists of `Point`s (values inside `@main`)."""

    before: int
    after: int


def matched(before: Sequence[Point], after: Sequence[Point]) -> list[Pair]:
    """Pair values that have the same name and type before and after a pass; values of a name and type that one of the
    modules has more often than the other are left out."""

    def numbers(points: Sequence[Point]) -> dict[tuple[str, Attribute], list[int]]:
        found: dict[tuple[str, Attribute], list[int]] = {}
        for number, point in enumerate(points):
            if point.name:
                found.setdefault((point.name, point.type), []).append(number)
        return found

    others = numbers(after)
    pairs = [
        Pair(a, b)
        for key, mine in numbers(before).items()
        if len(mine) == len(others.get(key, ()))
        for a, b in zip(mine, others[key], strict=True)
    ]
    return sorted(pairs, key=lambda pair: pair.before)


def opened(mod: IRModule, numbers: Sequence[int]) -> tuple[IRModule, list[Point], list[set[int]]]:
    """Clone the module, replace the values with the indices `numbers` by new arguments of `@main`, and make it return
    every computed value (`observed`). Return three things: the clone; its values, as points; and for each of its
    results, the positions in `numbers` of the new arguments that it depends on."""
    clone = mod.clone()
    function = clone["main"]
    block = function.body.block
    values = list(values_of(function))
    inputs, outputs = signature.read(function)
    reached: dict[SSAValue, set[int]] = {}
    for position, number in enumerate(numbers):
        value, _, type = values[number]
        argument = block.insert_arg(type, len(block.args))
        value.replace_all_uses_with(argument)
        reached[argument] = {position}
        inputs.append(described(f"value {position}", type, "input"))
    function.update_function_type()
    signature.write(function, inputs, outputs)
    points = _observe(clone)
    for op in block.ops:
        used = {value for inner in op.walk() for value in inner.operands}
        by = set[int]().union(*(reached.get(value, set[int]()) for value in used))
        reached.update((result, by) for result in op.results)
    assert isinstance(end := block.last_op, ReturnOp)
    return clone, points, [reached.get(value, set[int]()) for value in end.arguments]
