"""Elementwise operations on rows of every length, held against the interpreter."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import i32

from relay.dialects import relay
from relay.dialects.attributes import element_type, scalar_attr
from relay.driver import default_pipeline
from tests.numeric.compiled_modules import Net


def functions() -> Net:
    """A function of floats, by vectors of 64 or 32, of 16 and of 4, and one by one."""
    net = Net(55)
    for size in (64, 99, 20, 3):
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


@pytest.mark.parametrize("net", [functions, clamped])
def test_rows(net: Callable[[], Net]):
    net().check()


def test_widths():
    for processor, width in {"cascadelake": 64, "haswell": 32}.items():
        module = functions().module()
        default_pipeline(f"x86_64-linux-gnu -mcpu={processor}").apply(module)
        assert {int(n) for n in re.findall(r"vector<(\d+)xf32>", str(module))} == {width, 16, 4}


def test_codes_are_narrowed_together():
    module = clamped().module()
    default_pipeline("x86_64-linux-gnu -mcpu=cascadelake").apply(module)
    assert str(module).count("llvm.x86.avx512.packssdw.512") == 2 * 9
