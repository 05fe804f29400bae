"""The facts that op classes state, compared with what the interpreter computes for every op of the round-trip tests."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerAttr, TensorType, f32, i8, i32
from xdsl.ir import Block, SSAValue

from relay.dialects.attributes import Array, dtype_of, elements, scalar_attr, to_numpy
from relay.dialects.op import DYNAMIC, Origin, TensorOp, is_tensor, rank, shape, tensor
from relay.dialects.relay import DynamicOp
from relay.interpreters import evaluate
from relay.transforms.one_table import is_pointwise
from tests.ops.examples import FILES, functions


@cache
def ops_of(path: Path) -> list[TensorOp]:
    """Every op of a file whose types are known, but those that become other ones, whose facts they have."""
    return [
        op
        for function in functions(path)
        for op in function.body.walk()
        if op.name.startswith(("relay.", "qnn.")) and not isinstance(op, DynamicOp)
        if isinstance(op, TensorOp) and op.operands and all(map(is_static, (*op.operands, *op.results)))
    ]


def stem(path: Path) -> str:
    return path.stem


in_each_file = pytest.mark.parametrize("path", FILES, ids=stem)


def is_static(value: SSAValue) -> bool:
    return is_tensor(value.type) and DYNAMIC not in shape(value)


def numbers_of(rng: np.random.Generator, dtype: np.dtype[Any], count: int) -> Array:
    """Distinct numbers of a type, in order; floats have fractions."""
    low, high = -2000, 2000
    if dtype.kind in "iu":
        low, high = max(low, int(np.iinfo(dtype).min)), min(high, int(np.iinfo(dtype).max))
    fraction = 0.25 if dtype.kind == "f" else 0
    return (np.sort(rng.choice(np.arange(low, high + 1), count, replace=False)) + fraction).astype(dtype)


def parameters(op: TensorOp, rng: np.random.Generator) -> dict[int, Array]:
    """Small numbers for the operands that are not data, by their position."""
    data = op.data_operands()
    found: dict[int, Array] = {}
    for position, value in enumerate(op.operands):
        if value not in data:
            found[position] = rng.integers(0, 2, shape(value)).astype(dtype_of(tensor(value).element_type))
    return found


def operands(op: TensorOp, fixed: dict[int, Array], numbers: Array) -> list[Array]:
    """The op's operands: `fixed`, and for the data these numbers in turn, in the operands' types."""
    result: list[Array] = []
    start = 0
    for position, value in enumerate(op.operands):
        if position in fixed:
            result.append(fixed[position])
            continue
        dims = shape(value)
        count = int(np.prod(dims))
        array = numbers[start : start + count].reshape(dims)
        result.append(array.astype(dtype_of(tensor(value).element_type)))
        start += count
    return result


def count_of(op: TensorOp) -> int:
    return sum(int(np.prod(shape(value))) for value in op.data_operands())


def on_floats(op: TensorOp) -> TensorOp:
    """The op on float32 data."""
    data = op.data_operands()
    block = Block(arg_types=[TensorType(f32, shape(v)) if v in data else v.type for v in op.operands])
    return op.__class__.make(block.args, op.properties | dict.fromkeys(op.FILLS, scalar_attr(0.0, f32)))


def with_fills(op: TensorOp, fills: Sequence[float | int]) -> TensorOp:
    """The op with other numbers in its `FILLS`."""
    type = tensor(op.data_operands()[0]).element_type
    properties = {name: scalar_attr(fill, type) for name, fill in zip(op.FILLS, fills, strict=True)}
    return op.__class__.make(op.operands, op.properties | properties)


def renamed(op: TensorOp, rng: np.random.Generator) -> tuple[list[Array], list[Array]]:
    """Results for some numbers, with these then replaced by others one by one, and results for the others.

    The others are in the same order, or, if the op says that it does not look at its data, in any.
    """
    dtype = dtype_of(tensor(op.data_operands()[0]).element_type)
    count, extra = count_of(op), len(op.FILLS)
    old, new = (numbers_of(rng, dtype, count + extra) for _ in range(2))
    if op.origin is not Origin.SELECTED:
        new = rng.permutation(new)
    fixed, order = parameters(op, rng), rng.permutation(count + extra)
    fills = sorted(order[:extra])
    places = np.array([n for n in order if n not in fills], int)
    before, after = (
        evaluate(with_fills(op, [numbers[n].item() for n in fills]), operands(op, fixed, numbers[places]))
        for numbers in (old, new)
    )
    table = dict(zip(old.tolist(), new.tolist(), strict=True))
    wanted = [
        np.array([table.get(n, np.nan) for n in result.ravel().tolist()]).reshape(result.shape) for result in before
    ]
    return wanted, list(after)


@in_each_file
def test_elements_are_those_of_the_data(path: Path):
    for op in ops_of(path):
        if op.origin in (Origin.MOVED, Origin.SELECTED):
            for wanted, got in zip(*renamed(on_floats(op), np.random.default_rng(1)), strict=True):
                np.testing.assert_array_equal(got, wanted, op.name)


def is_of_one_type(op: TensorOp) -> bool:
    return {tensor(value).element_type for value in (*op.data_operands(), *op.results)} in ({f32}, {i32}, {i8})


@in_each_file
def test_no_op_moves_its_data_without_saying_so(path: Path):
    for op in ops_of(path):
        if op.origin is Origin.COMPUTED and is_of_one_type(op):
            wanted, got = renamed(op, np.random.default_rng(2))
            same = all(map(np.array_equal, wanted, got)) and any(a.size > 1 for a in wanted)
            assert not same, f"{op.name} gives elements of its data as they are: its ORIGIN is MOVED or SELECTED"


@in_each_file
def test_means_have_weights_that_sum_to_one(path: Path):
    for op in ops_of(path):
        if op.origin is Origin.AVERAGED:
            rng, real = np.random.default_rng(3), on_floats(op)
            numbers = rng.standard_normal(count_of(real))
            (got,), (moved,) = (evaluate(real, operands(real, {}, n)) for n in (numbers, 3 * numbers + 7))
            np.testing.assert_allclose(moved, 3 * got + 7, rtol=1e-4, atol=1e-4, err_msg=op.name)


def random_operands(op: TensorOp, rng: np.random.Generator) -> list[Array]:
    return operands(op, parameters(op, rng), rng.integers(-100, 100, count_of(op)))


def differing(op: TensorOp, old: Sequence[Array], position: int, index: tuple[int | slice, ...]) -> list[Array]:
    """Where the results are others if some elements of one operand are."""
    new = [array.copy() for array in old]
    new[position][index] = (
        np.logical_not(new[position][index]) if old[position].dtype == bool else old[position][index] + 9
    )
    return [(a != b) & ((a == a) | (b == b)) for a, b in zip(evaluate(op, old), evaluate(op, new), strict=True)]


def data_positions(op: TensorOp) -> list[int]:
    data = op.data_operands()
    return [position for position, value in enumerate(op.operands) if value in data]


@in_each_file
def test_elementwise_ops_read_one_place(path: Path):
    for op in ops_of(path):
        if op.ELEMENTWISE:
            reads_one_place(op, np.random.default_rng(4))


def reads_one_place(op: TensorOp, rng: np.random.Generator):
    old = random_operands(op, rng)
    for position in data_positions(op):
        dims = old[position].shape
        if dims == shape(op.results[0]):
            for flat in rng.integers(0, old[position].size, 6):
                place = tuple(int(i) for i in np.unravel_index(int(flat), dims))
                for found in differing(op, old, position, place):
                    found[place] = False
                    assert not found.any(), op.name


@in_each_file
def test_elementwise_ops_take_tensors_of_any_rank(path: Path):
    """Tables of their results are computed so (`relay.transforms.one_table`)."""
    for op in filter(is_pointwise, ops_of(path)):
        old = random_operands(op, np.random.default_rng(7))
        if {array.shape for array in old} == {shape(op.results[0])}:
            (wanted,), (got,) = evaluate(op, old), evaluate(op, [array.reshape(-1) for array in old])
            np.testing.assert_array_equal(got, wanted.reshape(-1), op.name)


@in_each_file
def test_numbers_along_an_axis_move_with_it(path: Path):
    """What an elementwise op has an axis for stands in `ALONG_AXIS`: if it turns with the data, so do the results."""
    for op in ops_of(path):
        if op.ALONG_AXIS or (op.ELEMENTWISE and "axis" in op.properties):
            turns_with_its_data(op)


def turns_with_its_data(op: TensorOp):
    assert isinstance(axis := op.properties["axis"], IntegerAttr) and op.ALONG_AXIS
    names = [name for name, _ in op.get_irdl_definition().operands]
    old = random_operands(op, np.random.default_rng(6))
    along, properties = range(rank(op.results[0]))[axis.value.data], dict(op.properties)

    def turned(array: Array) -> Array:
        return np.roll(array, 1, along if array.ndim == rank(op.results[0]) else 0) if array.ndim else array

    for name in op.ALONG_AXIS:
        if name not in names and (numbers := properties.get(name)) is not None and (array := to_numpy(numbers)).ndim:
            properties[name] = elements(turned(array))
    new = [
        turned(array) if position in data_positions(op) or names[position] in op.ALONG_AXIS else array
        for position, array in enumerate(old)
    ]
    other = op.__class__.make(op.operands, properties)
    for wanted, got in zip(evaluate(op, old), evaluate(other, new), strict=True):
        np.testing.assert_array_equal(got, turned(wanted), op.name)


def independent(op: TensorOp) -> list[int]:
    return [axis for axis in range(rank(op.results[0])) if op.independent_along(axis)]


@in_each_file
def test_indices_along_an_axis_are_independent(path: Path):
    for op in filter(independent, ops_of(path)):
        indices_are_independent(op)


def indices_are_independent(op: TensorOp):
    old = random_operands(op, np.random.default_rng(5))
    for axis, position in product(independent(op), data_positions(op)):
        dims, wanted = old[position].shape, shape(op.results[0])
        if len(dims) <= axis or dims[axis] != wanted[axis] or (op.ELEMENTWISE and len(dims) != len(wanted)):
            continue
        for index in range(dims[axis]):
            for found in differing(op, old, position, (*[slice(None)] * axis, index)):
                assert not np.delete(found, index, axis).any(), op.name
