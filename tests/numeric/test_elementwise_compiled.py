"""Elementwise operations on rows of every length, held against the interpreter."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerAttr, StringAttr, f32, i32, i64

from relay.compile.entry import build
from relay.compile.pipeline import default_pipeline
from relay.dialects import relay
from relay.dialects.attributes import Array, element_type, scalar_attr
from relay.target import host
from tests.marks import ci
from tests.numeric.compiled_modules import Net


def functions() -> Net:
    """A function of floats, by vectors of 64 or 32, of 16, of 8 and of 4, and one by one."""
    net = Net(55)
    for size in (64, 99, 20, 11, 5, 3):
        numbers = [net.argument(net.numbers("float32", *shape)) for shape in ((3, size), (size,))]
        net.result(f"{size}", net.add(relay.AddOp, [net.add(relay.ExpOp, numbers[:1], {}), numbers[1]], {}))
    return net


def clamped() -> Net:
    """Sums of codes, clamped to codes: 64 at a time, rows of whole vectors and not."""
    net = Net(56)
    for dtype, low, high in (("int8", -128, 127), ("int8", -100, 90), ("uint8", 3, 255)):
        for size in (64, 83, 131):
            x, y = (net.argument(net.numbers(dtype, *shape)) for shape in ((3, size), (size,)))
            wide = [net.add(relay.CastOp, [side], {"dtype": i32}) for side in (x, y)]
            sums = net.add(relay.SubtractOp, wide, {})
            bounds = {"a_min": scalar_attr(low, i32), "a_max": scalar_attr(high, i32)}
            codes = net.add(relay.CastOp, [net.add(relay.ClipOp, [sums], bounds)], {"dtype": element_type(dtype)})
            net.result(f"{dtype} from {low} to {high}, {size}", codes)
    return net


def gathered() -> Net:
    """Rows read by number: whole vectors or not, moved or computed."""
    net = Net(58)
    for size in (64, 21, 8, 5, 3):
        table = net.argument(net.numbers("float32", 7, size))
        rows = net.argument(net.rng.integers(-1, 9, (2, 3)).astype(np.int32))
        taken = net.add(relay.TakeOp, [table, rows], {"axis": IntegerAttr(0, i64), "mode": StringAttr("clip")})
        net.result(f"{size}", taken)
        net.result(f"{size}, squared", net.add(relay.MultiplyOp, [taken, taken], {}))
    return net


def short_rows() -> Net:
    """Rows of less than a vector, or a little more, of several types; exponentials divided by their sums."""
    net = Net(59)
    for size in (4, 7, 9, 15, 17, 31):
        for dtype in ("float32", "int8", "int32"):
            numbers = [net.argument(net.numbers(dtype, *shape)) for shape in ((5, size), (5, 1))]
            sums = net.add(relay.AddOp, numbers, {})
            net.result(f"{dtype}, {size}", sums)
            net.result(f"{dtype}, {size}, less", net.add(relay.LessOp, numbers, {}))
            if dtype == "float32":
                attributes = {"axis": IntegerAttr(-1, i64), "beta": scalar_attr(1.0, element_type(dtype))}
                net.result(f"softmax of {size}", net.add(relay.SoftmaxOp, [sums], attributes))
    return net


@pytest.mark.parametrize("net", [functions, clamped, gathered, short_rows])
def test_rows(net: Callable[[], Net]):
    net().check()


def test_widths():
    for processor, width in {"cascadelake": 64, "haswell": 32}.items():
        module = functions().module()
        default_pipeline(f"x86_64-linux-gnu -mcpu={processor}").apply(module)
        assert {int(n) for n in re.findall(r"vector.load .*vector<(\d+)xf32>", str(module))} == {width, 16, 8, 4}


def test_a_row_ends_with_a_vector_that_overlaps_the_one_before():
    """91 exponentials of a row are 64, 16 and 16; of rows of 11, all together."""
    for size, widths in {91: [64, 16, 16], 11: [64, 16]}.items():
        net = Net(60)
        data, attributes = net.argument(net.numbers("float32", 13, size)), {"axis": IntegerAttr(-1, i64)}
        net.result("", net.add(relay.SoftmaxOp, [data], attributes | {"beta": scalar_attr(1.0, f32)}))
        module = net.module()
        steps = default_pipeline("x86_64-linux-gnu -mcpu=cascadelake")
        steps[: [step.name for step in steps].index("schedule") + 1].apply(module)
        assert [int(n) for n in re.findall(r"math.exp .*vector<(\d+)xf32>", str(module))] == widths


def test_powers_of_two_by_an_instruction_are_the_same_bits():
    if "avx512f" not in host().features:
        pytest.skip("this CPU has no AVX-512")
    x = np.linspace(-120, 100, 1 << 14, dtype=np.float32)
    x[:4] = np.inf, -np.inf, np.nan, 0.0
    found: list[Array] = []
    for target in ("llvm", "x86_64-unknown-linux-gnu -mattr=+avx2,+fma"):
        net = Net(57)
        net.result("exp", net.add(relay.ExpOp, [net.argument(x)], {}))
        result = build(net.module(), target)(x)
        assert isinstance(result, np.ndarray)
        found.append(result)
    assert np.array_equal(found[0].view(np.int32), found[1].view(np.int32))
    assert found[0][x < -88].max() < np.finfo(np.float32).tiny and found[0][0] == np.inf and found[0][1] == 0


def test_rows_by_number_are_vectors():
    module = gathered().module()
    default_pipeline("x86_64-linux-gnu -mcpu=cascadelake").apply(module)
    loads = re.findall(r"memref\.load %\w+\[.*memref<7x(\d+)xf32>", str(module))
    assert set(loads) == {"3"}


def test_codes_are_narrowed_together():
    module = clamped().module()
    default_pipeline("x86_64-linux-gnu -mcpu=cascadelake").apply(module)
    assert str(module).count("llvm.x86.avx512.packssdw.512") == 2 * 9


@pytest.mark.parametrize(
    "dtype",
    ["int8", "uint16", *ci(("uint8", "int16", "int32", "uint32"))],
)
def test_quotients_and_powers_of_integers(dtype: str):
    net = Net(57)
    a, b, small = (net.numbers(dtype, 3, 50) for _ in range(3))
    b[0, :9], b[1] = 0, np.maximum(b[1] // 64, 1)
    left, right, exponent = net.argument(a), net.argument(b), net.argument(small % 9)
    fixed = net.constant(np.array(7, dtype))
    for op in (relay.DivideOp, relay.FloorDivideOp, relay.ModOp, relay.FloorModOp):
        net.result(op.name, net.add(op, [left, right], {}))
        net.result(f"{op.name} by 7", net.add(op, [left, fixed], {}))
    net.result("power", net.add(relay.PowerOp, [left, exponent], {}))
    net.result("size", net.add(relay.AbsOp, [left], {}))
    net.check()
