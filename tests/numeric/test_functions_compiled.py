"""Functions, comparisons, logic, remainders and powers, compiled: floats within a few units in the last place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relay.compile.entry import build
from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.dialects.op import TensorOp
from relay.interpreters import run
from relay.runtime import load
from tests.numeric.compiled_modules import Net

ULPS = 4
POINTS = np.concatenate([np.linspace(-9, 9, 301), [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-20, 1e20, 0.5, -1.5]])
UNIT: list[type[TensorOp]] = [relay.AcosOp, relay.AsinOp, relay.AtanhOp]
"""Functions of numbers in [-1, 1]."""
ABOVE_ONE: list[type[TensorOp]] = [relay.AcoshOp, relay.Log2Op, relay.Log10Op]
ANY: list[type[TensorOp]] = [
    relay.AsinhOp, relay.AtanOp, relay.CosOp, relay.CoshOp, relay.ErfOp, relay.Expm1Op, relay.SinOp, relay.SinhOp,
    relay.TanOp, relay.TruncOp, relay.FastErfOp, relay.FastExpOp, relay.FastTanhOp, relay.SignOp, relay.CopyOp,
    relay.ZerosLikeOp, relay.OnesLikeOp, relay.IsnanOp, relay.IsinfOp, relay.IsfiniteOp,
    relay.ShapeOfOp, relay.NdarraySizeOp,
]  # fmt: skip
COMPARISONS: list[type[TensorOp]] = [relay.NotEqualOp, relay.GreaterEqualOp, relay.LessEqualOp]
REMAINDERS: list[type[TensorOp]] = [relay.ModOp, relay.FloorModOp]
LOGIC: list[type[TensorOp]] = [relay.LogicalAndOp, relay.LogicalOrOp, relay.LogicalXorOp]
BITS: list[type[TensorOp]] = [relay.BitwiseAndOp, relay.BitwiseOrOp, relay.BitwiseXorOp, relay.PowerOp]


def ulps(got: Array, want: Array) -> int:
    """The largest distance, in units in the last place; NaN and infinities must be where they are wanted."""
    assert np.array_equal(np.isfinite(got), finite := np.isfinite(want))
    assert np.array_equal(got[~finite], want[~finite], equal_nan=True)
    bits = f"i{want.dtype.itemsize}"
    steps = [np.abs(x[finite].view(bits).astype(np.int64)) for x in (np.abs(got), np.abs(want))]
    assert np.array_equal(np.sign(got[finite]), np.sign(want[finite]))
    return int(np.abs(steps[0] - steps[1]).max(initial=0))


def check(net: Net) -> None:
    module = net.module()
    results = build(module).run(*net.inputs)
    assert isinstance(results, tuple)
    for name, got, want in zip(net.results, results, run(module, net.inputs), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape), name
        if want.dtype.kind == "f":
            assert ulps(got, want) <= ULPS, name
        else:
            assert np.array_equal(got, want), name


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_functions_of_floats(dtype: str) -> None:
    net = Net(1)
    whole = POINTS.astype(dtype)
    unit = np.linspace(-1, 1, 65).astype(dtype)
    for points, kinds in ((unit, UNIT), (np.abs(whole) + 1, ABOVE_ONE), (whole, ANY)):
        x = net.argument(points.astype(dtype))
        for kind in kinds:
            net.result(kind.name, net.add(kind, [x], {}))
    lhs, rhs = (net.argument((net.rng.standard_normal(d) * 8).astype(dtype)) for d in ((5, 1), (1, 40)))
    for kind in (*COMPARISONS, *REMAINDERS):
        net.result(kind.name, net.add(kind, [lhs, rhs], {}))
    net.result("power", net.add(relay.PowerOp, [net.add(relay.AbsOp, [lhs], {}), rhs], {}))
    less, greater = net.add(relay.LessEqualOp, [lhs, rhs], {}), net.add(relay.GreaterOp, [lhs, rhs], {})
    net.result("logical_not", net.add(relay.LogicalNotOp, [less], {}))
    for kind in LOGIC:
        net.result(kind.name, net.add(kind, [less, greater], {}))
    check(net)


@pytest.mark.parametrize(
    "dtype", ["int8", *(pytest.param(d, marks=pytest.mark.slow) for d in ("uint8", "int32", "int64"))]
)
def test_functions_of_integers(dtype: str) -> None:
    """Every sign, zero divisors, the lowest number by -1, exponents that overflow."""
    net = Net(2)
    lowest = np.iinfo(dtype).min
    numbers = np.array([lowest, lowest + 1, -7, -3, -1, 0, 1, 2, 5, 127], np.int64).astype(dtype)
    lhs, rhs = net.argument(numbers.reshape(1, -1)), net.argument(numbers.reshape(-1, 1))
    for kind in (relay.SignOp, relay.BitwiseNotOp):
        net.result(kind.name, net.add(kind, [lhs], {}))
    for kind in (*COMPARISONS, *REMAINDERS, *BITS):
        net.result(kind.name, net.add(kind, [lhs, rhs], {}))
    net.result("cube", net.add(relay.PowerOp, [lhs, net.constant(np.array(3, dtype))], {}))
    check(net)


@pytest.mark.parametrize(
    "dtype", ["int8", pytest.param("uint8", marks=pytest.mark.ci), pytest.param("int16", marks=pytest.mark.slow)]
)
def test_quotients_of_short_integers(dtype: str) -> None:
    """All pairs of 8 bits, and of some of 16."""
    net, info = Net(5), np.iinfo(dtype)
    numbers = np.unique(np.linspace(info.min, info.max, 256).astype(dtype).tolist() + [0, 1, 2]).astype(dtype)
    pairs = net.argument(numbers.reshape(1, -1)), net.argument(numbers.reshape(-1, 1))
    ends = [net.argument(net.rng.integers(info.min, info.max, (50, 10), dtype, endpoint=True)) for _ in range(2)]
    for kind in (relay.DivideOp, relay.FloorDivideOp, *REMAINDERS):
        for name, operands in (("pairs", pairs), ("rows", ends)):
            net.result(f"{kind.name} of {name}", net.add(kind, operands, {}))
    check(net)


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_quotients_of_two_at_the_end_of_a_row(dtype: str) -> None:
    """LLVM makes a vector of them."""
    net = Net(6)
    rows = [net.argument(net.numbers(dtype, 10)) for _ in range(2)]
    for kind in (relay.FloorDivideOp, relay.FloorModOp):
        net.result(kind.name, net.add(kind, rows, {}))
    module = net.module()
    executable = build(module)
    for _ in range(50):
        feeds = [net.numbers(dtype, 10) for _ in range(2)]
        for got, want in zip(executable.run(*feeds) or (), run(module, feeds), strict=True):
            assert np.array_equal(got, want)


def test_functions_that_a_saved_file_calls(tmp_path: Path) -> None:
    """What LLVM has no intrinsic for is found in libm by the system's loader."""
    net = Net(4)
    x = net.argument(np.linspace(-0.9, 0.9, 37).astype(np.float32))
    for kind in (relay.ErfOp, relay.AsinhOp, relay.AtanhOp, relay.TanOp):
        net.result(kind.name, net.add(kind, [x], {}))
    module = net.module()
    build(module).save(tmp_path / "functions.relay")
    results = load(tmp_path / "functions.relay").run(*net.inputs)
    assert isinstance(results, tuple)
    for got, want in zip(results, run(module, net.inputs), strict=True):
        assert ulps(got, want) <= ULPS


@pytest.mark.parametrize("size", [1, 3, 16, 37])
def test_booleans_take_a_byte(size: int) -> None:
    """Vectors of booleans are stored and read as bytes, also where a part of a vector is."""
    net = Net(3)
    x = net.argument(net.numbers("float32", 2, size))
    less = net.add(relay.LessOp, [x, net.constant(np.zeros((), np.float32))], {})
    net.result("stored", less)
    given = net.argument(net.rng.integers(0, 2, (2, size)).astype(np.bool_))
    net.result("read", net.add(relay.WhereOp, [given, x, net.add(relay.NegativeOp, [x], {})], {}))
    net.check()
