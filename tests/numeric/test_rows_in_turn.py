"""Normalizations and softmax of rows, all operations on one row before the next, against float64."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import vector
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr, f32, i32, i64

from relay.compile.entry import build
from relay.compile.pipeline import default_pipeline
from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, element_type
from relay.lowering.scheduling.registry import schedules_of
from relay.lowering.shaped import is_vector
from tests.numeric.compiled_modules import Net

SIZES = ((3, 16), (1, 37), (2, 5, 64), (4, 100), (2, 3, 391))


def norm_of(x: Array, gamma: Array, beta: Array) -> Array:
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5) * gamma + beta


def softmax_of(x: Array) -> Array:
    powers = np.exp(x.astype(np.float64) - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def add_rows(net: Net, shape: tuple[int, ...]) -> list[Array]:
    """A sum, its normalization, the codes of that, a softmax, the sum by its root mean square; in float64."""
    x, y = (net.rng.normal(3, 1, shape).astype(np.float32) for _ in "xy")
    gamma, beta = (net.rng.normal(size=shape[-1]).astype(np.float32) for _ in "gb")
    total = net.add(relay.AddOp, [net.argument(x), net.argument(y)], {})
    epsilon = {"epsilon": FloatAttr(1e-5, f32)}
    norm = net.add(relay.LayerNormOp, [total, net.constant(gamma), net.constant(beta)], epsilon)
    net.result(f"norm {shape}", norm)
    codes = {"scale": FloatAttr(0.03, f32), "zero_point": IntegerAttr(120, i32), "rounding": StringAttr("even")}
    net.result(f"codes {shape}", net.add(qnn.QuantizeOp, [norm], codes | {"out_dtype": element_type("uint8")}))
    softmax = {"beta": FloatAttr(1.0, f32), "axis": IntegerAttr(len(shape) - 1, i64)}
    net.result(f"softmax {shape}", net.add(relay.SoftmaxOp, [net.argument(x)], softmax))
    net.result(f"root {shape}", net.add(relay.RmsNormOp, [total, net.constant(gamma)], epsilon))
    wanted = norm_of(x + y, gamma, beta)
    total64 = (x + y).astype(np.float64)
    by_root = total64 / np.sqrt((total64**2).mean(axis=-1, keepdims=True) + 1e-5) * gamma
    return [wanted, np.clip(np.rint(wanted / np.float32(0.03)) + 120, 0, 255), softmax_of(x), by_root]


def computed(net: Net) -> list[Array]:
    """What compiled code gives for each result."""
    found = build(net.module())(*net.inputs)
    return [np.asarray(each) for each in (found if isinstance(found, tuple) else [found])]


def test_rows_in_turn():
    net = Net(7)
    wanted = [each for shape in SIZES for each in add_rows(net, shape)]
    for name, found, exact in zip(net.results, computed(net), wanted, strict=True):
        apart = np.abs(found.astype(np.float64) - exact)
        if name.startswith("codes"):
            assert apart.max() <= 1 and (apart > 0).mean() <= 0.01, name
        else:
            assert apart.max() <= 2e-6 * np.abs(exact).max(), name


def test_a_normalization_is_one_kernel():
    net = Net(7)
    add_rows(net, (4, 100))
    module = default_pipeline("x86_64-linux-gnu -mcpu=cascadelake")(net.module())
    kinds = [one.strategy for function in module.functions.values() for one in schedules_of(function)]
    assert kinds == ["in_turn"] * 3


def test_no_register_is_stored_as_part_of_a_wider_vector():
    """LLVM takes what it knows a vector of several registers to hold apart number by number."""
    net = Net(7)
    softmax = {"beta": FloatAttr(1.0, f32), "axis": IntegerAttr(1, i64)}
    net.result("softmax", net.add(relay.SoftmaxOp, [net.argument(net.numbers("float32", 4, 128))], softmax))
    module = default_pipeline("x86_64-linux-gnu -mcpu=cascadelake")(net.module())
    stored = [op.vector.type for op in module.op.walk() if isinstance(op, vector.StoreOp)]
    assert {type.get_shape() for type in stored if is_vector(type)} == {(16,)}


def test_rows_of_one_number_each_are_not_a_number():
    """The largest element is infinite: the differences are no numbers, as in the interpreter."""
    net = Net(1)
    x = np.full((2, 32), np.inf, np.float32)
    softmax = {"beta": FloatAttr(1.0, f32), "axis": IntegerAttr(1, i64)}
    net.result("softmax", net.add(relay.SoftmaxOp, [net.argument(x)], softmax))
    assert np.isnan(computed(net)[0]).all()


def test_a_row_with_one_that_is_no_number_is_none():
    """Wherever it stands, and whatever the largest number is; other rows are as they were."""
    for width in (5, 16, 37, 100, 391):
        net, odd = Net(11), [*range(width)]
        x: Array = net.rng.normal(size=(width + 4, width)).astype(np.float32)
        x[odd, odd] = np.nan
        x[0, 1:], x[1, 2:], x[-1], x[-2, 3] = -np.inf, np.inf, -np.inf, np.inf
        softmax = {"beta": FloatAttr(1.0, f32), "axis": IntegerAttr(1, i64)}
        net.result("softmax", net.add(relay.SoftmaxOp, [net.argument(x)], softmax))
        (found,) = computed(net)
        assert np.isnan(found[[*odd, -1, -2]]).all()
        np.testing.assert_allclose(found[width : width + 2], softmax_of(x[width : width + 2]), rtol=1e-5, atol=1e-7)
