"""Folds computations of shapes once sizes are known, so that ops whose properties are operands become static ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.dialects import scf, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from relay.dialects import relay
from relay.dialects.attributes import Array, dtype_of, elements, to_numpy
from relay.dialects.op import DYNAMIC, TensorOp, is_tensor, shape
from relay.dialects.relay.partial import known_value
from relay.errors import Malformed
from relay.module import is_constant
from relay.transforms.dead_ops import erase_dead
from relay.transforms.infer_types import infer_function
from relay.transforms.location import place


@dataclass(frozen=True, eq=False)
class Fold:
    """A record of an op that was folded when sizes were given: either its result was computed, or it is a `relay.dyn`
    op, which was replaced by the op with fixed properties."""

    kind: type[TensorOp]
    numbers: tuple[Array, ...]
    """The values of the folded op's operands. For a `relay.dyn` op, only those of the operands that the replacing op
    has as properties, such as the new shape of a reshape."""
    result: Array | None = None
    dims: tuple[int, ...] = ()
    """The shape of the data operand of a `relay.dyn` op; empty for other ops."""


def settle(module: ModuleOp, folds: list[Fold] | None = None) -> None:
    """Infer all types, in program order, and fold values that decide shapes or branches as soon as they are known; each
    is appended to `folds`.

    Raises Malformed where an op does not accept its operands or their values.
    """
    seen: list[Fold] = [] if folds is None else folds
    functions = {f.sym_name.data: f for f in module.walk() if isinstance(f, FuncOp)}
    made: list[Operation] = []
    arithmetic = {value.owner for function in functions.values() for value in deciding(function)}

    def known(op: Operation) -> None:
        if isinstance(op, scf.IfOp):
            _take_branch(op)
            return
        static = _made_static(op, seen) if isinstance(op, relay.DynamicOp) else op
        if op not in arithmetic or not isinstance(static, TensorOp) or (constant := _folded(static, seen)) is None:
            return
        _replace(static, constant)
        made.append(constant)

    done: set[str] = set()
    for name in functions:
        infer_function(name, functions, done, known)
    erase_dead([*made, *(op for op in arithmetic if isinstance(op, Operation))])


def deciding(function: FuncOp) -> set[SSAValue]:
    """The values of a function whose elements decide shapes: those from which the operands of `relay.dyn` ops are
    computed, or the conditions of branches with results of unknown shape. Values that only give their own shape to such
    a computation are not included."""
    pending = [value for op in function.walk() for value in _decisions(op)]
    found: set[SSAValue] = set()
    while pending:
        value = pending.pop()
        if value in found:
            continue
        found.add(value)
        if isinstance(value.owner, TensorOp | tensor.ExtractOp) and not isinstance(value.owner, relay.MeasureOp):
            pending += value.owner.operands
    return found


def deciding_arguments(function: FuncOp) -> list[int]:
    """The positions of arguments whose elements decide shapes."""
    found = deciding(function)
    return [argument.index for argument in function.body.block.args if argument in found]


def give_values(function: FuncOp, values: Mapping[int, Array]) -> None:
    """Replace the uses of arguments by constants; `values` has the elements by argument index. The arguments remain."""
    block = function.body.block
    for index, array in values.items():
        argument = block.args[index]
        constant = relay.ConstantOp.make([], {"value": elements(array)})
        first = block.first_op
        assert first is not None
        Rewriter.insert_op(constant, InsertPoint.before(first))
        argument.replace_all_uses_with(constant.result)


def _decisions(op: Operation) -> Iterator[SSAValue]:
    if isinstance(op, relay.DynamicOp):
        yield from op.given().values()
    elif isinstance(op, scf.IfOp) and any(is_tensor(type) and DYNAMIC in type.get_shape() for type in op.result_types):
        yield op.cond


def _made_static(op: relay.DynamicOp, seen: list[Fold]) -> TensorOp | None:
    """relay.dyn.reshape %x, <known>  =>  relay.reshape %x"""
    try:
        found = op.static()
    except VerifyException as error:
        raise Malformed(place(op), str(error)) from None
    if found is not None:
        given = [known_value(value) for value in op.given().values()]
        dims = shape(op.operands[0]) if len(given) < len(op.operands) else ()
        seen.append(Fold(type(op), tuple(array for array in given if array is not None), dims=tuple(dims)))
        _replace(op, found)
    return found


def _folded(op: TensorOp, seen: list[Fold]) -> relay.ConstantOp | None:
    """The constant that replaces the op; None if its operands are not known yet."""
    given: list[Array] = []
    if isinstance(op, relay.MeasureOp):
        if DYNAMIC in shape(op.input):
            return None
        numbers = measured(op)
    else:
        sources = [value.owner for value in op.operands if is_constant(value.owner)]
        if isinstance(op, relay.ConstantOp) or len(op.results) != 1 or len(sources) != len(op.operands):
            return None
        from relay.interpreters import evaluate  # here: relay-opt starts without it

        given = [to_numpy(source.value) for source in sources]
        (numbers,) = evaluate(op, given)
    seen.append(Fold(type(op), tuple(given), numbers))
    return relay.ConstantOp.make([], {"value": elements(numbers)}, like=op)


def measured(op: relay.MeasureOp) -> Array:
    """The sizes, or their product, that the op returns for an operand of known shape."""
    dims = shape(op.input)
    return np.array(dims if isinstance(op, relay.ShapeOfOp) else prod(dims), dtype_of(op.dtype))


def _take_branch(op: scf.IfOp) -> None:
    """scf.if <known> { a } else { b }  =>  a, or b"""
    extract = op.cond.owner
    if not isinstance(extract, tensor.ExtractOp) or not is_constant(source := extract.tensor.owner):
        return
    region = op.true_region if np.all(to_numpy(source.value)) else op.false_region
    block = region.block
    end = block.last_op
    assert isinstance(end, scf.YieldOp)
    values = list(end.operands)
    Rewriter.erase_op(end)
    for inner in list(block.ops):
        inner.detach()
        Rewriter.insert_op(inner, InsertPoint.before(op))
    Rewriter.replace_op(op, [], values)


def _replace(op: Operation, found: TensorOp) -> None:
    names = [result.name_hint for result in op.results]
    Rewriter.replace_op(op, found)
    for result, name in zip(found.results, names, strict=True):
        result.name_hint = name
