"""Pools and sums over rows and columns with many channels: results in registers, windows over borders."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import BoolAttr

from relay import IRModule, build
from relay.compile.pipeline import default_pipeline
from relay.dialects import relay
from relay.dialects.attributes import element_type, ints
from relay.passes import PassContext
from tests.numeric.compiled_modules import Net
from tests.numeric.test_schedules_compiled import choices

GEOMETRIES = (
    (16, (3, 3), (1, 1), (1, 1, 1, 1)), (40, (2, 3), (2, 1), (0, 0, 1, 2)), (70, (3, 3), (2, 2), (0, 0, 1, 1)),
    (7, (3, 3), (1, 1), (1, 1, 1, 1)), (130, (5, 6), (5, 6), (0, 0, 0, 0)), (33, (4, 1), (1, 3), (3, 0, 3, 0)),
)  # fmt: skip
"""Channels, sizes, strides, padding."""


def windows(dtype: str) -> Net:
    """Pools of both kinds, and sums of what is widened; some are followed by other operations."""
    net = Net(60)
    for channels, size, strides, padding in GEOMETRIES:
        x = net.argument(net.numbers(dtype, 2, 5, 6, channels))
        for kind in (relay.MaxPool2dOp, relay.AvgPool2dOp):
            properties = {"pool_size": ints(size), "strides": ints(strides), "padding": ints(padding)}
            pooled = net.add(kind, [x], properties)
            net.result(f"{kind.name} {channels}", pooled)
            if channels == 70:
                net.result(f"{kind.name} and more", net.add(relay.MaximumOp, [pooled, pooled], {}))
        wide = net.add(relay.CastOp, [x], {"dtype": element_type("float32" if dtype == "float32" else "int32")})
        keep = {"axis": ints([1, 2]), "keepdims": BoolAttr.from_bool(channels % 2 == 0)}
        net.result(f"sums {channels}", net.add(relay.SumOp, [wide], keep))
    return net


@pytest.mark.parametrize(
    "dtype", ["int8", pytest.param("float32", marks=pytest.mark.ci), pytest.param("uint8", marks=pytest.mark.slow)]
)
def test_windows(dtype: str):
    with PassContext(opt_level=1):
        windows(dtype).check()


def test_what_is_chosen():
    said = choices(windows("int8"))
    assert all(f"windows: {count} channels at a time" in said for count in (16, 32, 64))


def test_an_image_that_is_read_without_the_window_is_no_pool():
    read, window, written = "(n, y, x, c)", "(i, j)", "(n, y, x, c)"
    maps = ", ".join(f"affine_map<(n, y, x, c, i, j) -> {each}>" for each in (read, window, written))
    image, loops = "tensor<1x4x4x16xf32>", ", ".join(['"parallel"'] * 4 + ['"reduction"'] * 2)
    module = IRModule.parse(f"""func.func @main(%x: {image}) -> {image} {{
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : {image}
      %window = tensor.empty() : tensor<3x3xf32>
      %start = linalg.fill ins(%zero : f32) outs(%empty : {image}) -> {image}
      %sums = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{loops}]}}
          ins(%x, %window : {image}, tensor<3x3xf32>) outs(%start : {image}) {{
      ^bb0(%a: f32, %b: f32, %sum: f32):
        %next = arith.addf %sum, %a : f32
        linalg.yield %next : f32
      }} -> {image}
      func.return %sums : {image}
    }}""")
    x = np.random.default_rng(0).standard_normal((1, 4, 4, 16)).astype(np.float32)
    np.testing.assert_allclose(np.asarray(build(module, "llvm").run(x)).reshape(x.shape), 9 * x, rtol=1e-5)


def sums_of_rows(dtype: str) -> Net:
    """Sums along the last axis but one, alone, kept as an axis, and followed by other operations."""
    net = Net(61)
    for shape in ((2, 9, 64), (1, 30, 20), (3, 7, 150), (2, 3, 11, 33), (1, 5, 4, 16)):
        x = net.argument(net.numbers(dtype, *shape))
        wide = net.add(relay.CastOp, [x], {"dtype": element_type("int32")})
        for keep in (False, True):
            properties = {"axis": ints([len(shape) - 2]), "keepdims": BoolAttr.from_bool(keep)}
            sums = net.add(relay.SumOp, [wide], properties)
            net.result(f"{shape} {keep}", net.requantize(sums, shape[-1], dtype))
    x = net.argument(net.numbers(dtype, 2, 6, 48))
    wide = net.add(relay.CastOp, [x], {"dtype": element_type("int32")})
    net.result("sums", net.add(relay.SumOp, [wide], {"axis": ints([1])}))
    return net


@pytest.mark.parametrize("dtype", ["int8", pytest.param("uint8", marks=pytest.mark.ci)])
def test_sums_of_rows_of_codes(dtype: str):
    with PassContext(opt_level=1):
        sums_of_rows(dtype).check()


def test_sums_of_rows_of_codes_are_windows():
    """No image is widened in memory first."""
    module = sums_of_rows("int8").module()
    default_pipeline().apply(module)
    kernels = [function for name, function in module.functions.items() if name.startswith("sum")]
    assert len(kernels) >= 6
    assert all('"windows"' in str(kernel.attributes.get("relay.schedule")) for kernel in kernels)
