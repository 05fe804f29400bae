"""Random neural-network ops with their results by another route: held against the interpreter, which is held against
the compiled code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pytest
from xdsl.ir import Attribute

from relay.dialects.attributes import Array, ints
from relay.dialects.op import TensorOp
from relay.interpreters import compute
from relay.passes import PassContext
from tests.conftest import Cases
from tests.numeric.compiled_modules import Net

Rng = np.random.Generator


class Example(NamedTuple):
    """An op, and what its result must be; without a result, only code and interpreter are compared."""

    operands: Sequence[Array]
    properties: Mapping[str, Attribute]
    wanted: Array | None
    constants: Sequence[int] = ()
    """Operands that the code gets as constants."""
    tolerance: float = 1e-5


Make = Callable[[Rng], Example]


def numbers(rng: Rng, dtype: str, shape: Sequence[int]) -> Array:
    """Codes over their whole range; floats around zero."""
    shape = [int(size) for size in shape]
    if dtype.startswith("float"):
        return rng.standard_normal(shape).astype(dtype)
    bounds = np.iinfo(dtype)
    return rng.integers(int(bounds.min), int(bounds.max) + 1, shape).astype(dtype)


def sizes(rng: Rng, count: int, low: int = 1, high: int = 6) -> list[int]:
    return [int(n) for n in rng.integers(low, high, count)]


def pick(rng: Rng, *items: str) -> str:
    return items[int(rng.integers(len(items)))]


def array(values: Sequence[int] | Array) -> Attribute:
    return ints([int(value) for value in values])


def close(got: Array, wanted: Array, tolerance: float) -> bool:
    """Equal integers; floats within `tolerance` of themselves, or of the largest where they nearly vanish."""
    if (got.dtype, got.shape) != (wanted.dtype, wanted.shape):
        return False
    if wanted.dtype.kind != "f":
        return np.array_equal(got, wanted)
    largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=1e-6)
    return np.allclose(got, wanted, rtol=tolerance, atol=tolerance * float(largest))


def compare(kind: type[TensorOp], make: Make, count: int, seed: int, level: int = 1) -> None:
    """Hold the interpreter against the expected results, and the code against the interpreter: one build for all, at
    `level`, by default one at which LLVM is quick."""
    net, rng = Net(seed), np.random.default_rng([seed, *kind.name.encode()])
    for number in range(count):
        example = make(rng)
        (meant,) = compute(kind, example.operands, example.properties)
        if example.wanted is not None:
            assert close(meant, example.wanted, example.tolerance), (kind.name, example.properties)
        operands = [
            net.constant(x) if index in example.constants else net.argument(x)
            for index, x in enumerate(example.operands)
        ]
        net.result(str(number), net.add(kind, operands, example.properties))
    with PassContext(opt_level=level):
        net.check()


def random_tests(makers: Mapping[type[TensorOp], Make]) -> tuple[Callable[..., None], Callable[..., None]]:
    """Two tests of these ops: a few random examples by default, many with `-m fuzz`."""

    def name_of(kind: type[TensorOp]) -> str:
        return kind.name

    @pytest.mark.parametrize("kind", makers, ids=name_of)
    def few(kind: type[TensorOp]) -> None:
        compare(kind, makers[kind], 2, 1)

    @pytest.mark.fuzz
    @pytest.mark.parametrize("kind", makers, ids=name_of)
    def many(kind: type[TensorOp], cases: Cases) -> None:
        for number in cases(4):
            compare(kind, makers[kind], 20, 2 + number, 2)

    return few, many
