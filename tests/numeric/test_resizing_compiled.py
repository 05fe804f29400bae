"""Resizing by Relay's rules: interpreted as ONNX Runtime, or integers and numpy's `interp`, say, and compiled."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr, f64
from xdsl.ir import Attribute

from relay.compile.entry import build
from relay.dialects import relay
from relay.dialects.attributes import Array, scalar_attr
from relay.dialects.op import TensorOp
from relay.interpreters import compute, run
from relay.module import IRModule
from tests.numeric.nn_examples import Example, Make, Rng, array, close, numbers, pick, random_tests, sizes

COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
ROUNDINGS = ("", "round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil")


def positions(size: int, result: int, coordinates: str) -> tuple[Array, int]:
    """Numerators, and the denominator."""
    o = np.arange(result)
    if coordinates == "asymmetric":
        return o * size, result
    if coordinates == "align_corners":
        return o * (size - 1), max(result - 1, 1)
    if coordinates == "tf_half_pixel_for_nn":
        return (2 * o + 1) * size, 2 * result
    if coordinates == "pytorch_half_pixel" and result == 1:
        return o, 1
    return (2 * o + 1) * size - result, 2 * result


def rounded(at: Array, by: int, rounding: str) -> Array:
    match rounding:
        case "floor":
            return at // by
        case "ceil":
            return -(-at // by)
        case "round_prefer_floor":
            return -(-(2 * at - by) // (2 * by))
        case _:
            return (2 * at + by) // (2 * by)


def resized(x: Array, wanted: Sequence[int], method: str, coordinates: str, rounding: str = "") -> Array:
    """Channels last, nearest or linear, axis by axis."""
    wide = x if method == "nearest_neighbor" else x.astype(np.float64)
    for axis, result in enumerate(wanted, 1):
        size = wide.shape[axis]
        at, by = positions(size, result, coordinates)
        if method == "nearest_neighbor":
            choice = rounding or ("round" if coordinates == "align_corners" else "floor")
            wide = wide.take(rounded(at, by, choice).clip(0, size - 1), axis)
        else:
            wide = np.apply_along_axis(partial(blend, at / by), axis, wide)
    return wide.astype(x.dtype)


def blend(at: Array, row: Array) -> Array:
    return np.interp(at, np.arange(len(row)), row)


def resize(kind: type[relay.ResizeOp], rng: Rng) -> Example:
    method = pick(rng, "nearest_neighbor", "linear")
    coordinates, rounding = pick(rng, *COORDINATES, "tf_half_pixel_for_nn"), pick(rng, *ROUNDINGS)
    dtype = pick(rng, "float32", "int8") if method == "nearest_neighbor" else "float32"
    x = numbers(rng, dtype, [*sizes(rng, 1, 1, 3), *sizes(rng, len(kind.SPATIAL), 1, 8), *sizes(rng, 1, 1, 9)])
    wanted = sizes(rng, len(kind.SPATIAL), 1, 12)
    expected = resized(x, wanted, method, coordinates, rounding)
    order = [0, x.ndim - 1, *range(1, x.ndim - 1)] if rng.integers(2) else list(range(x.ndim))
    letters = f"N{kind.SPATIAL}C"
    properties: dict[str, Attribute] = {
        "size": array(wanted),
        "method": StringAttr(method),
        "coordinate_transformation_mode": StringAttr(coordinates),
        "rounding_method": StringAttr(rounding),
        "layout": StringAttr("".join(letters[n] for n in order)),
    }
    return Example([np.ascontiguousarray(x.transpose(order))], properties, expected.transpose(order))


def region(rng: Rng, count: int) -> list[float]:
    """Parts of each axis, perhaps beyond the data, in eighths."""
    return [float(n) / 8 for n in [*rng.integers(-2, 5, count), *rng.integers(3, 11, count)]]


def crop(kind: type[relay.ResizeOp] | type[relay.Resize2dOp], axes: int, rng: Rng) -> Example:
    """Without another route: two axes are compared with ONNX below."""
    method = pick(rng, "nearest_neighbor", "linear", "cubic")
    x = numbers(rng, pick(rng, "float32", "int8") if method == "nearest_neighbor" else "float32", [
        1, *sizes(rng, axes, 1, 8), *sizes(rng, 1, 1, 9)
    ])  # fmt: skip
    properties: dict[str, Attribute] = {
        "size": array(sizes(rng, axes, 1, 12)),
        "method": StringAttr(method),
        "coordinate_transformation_mode": StringAttr("tf_crop_and_resize"),
        "roi": DenseArrayBase.from_list(f64, region(rng, axes)),
        "extrapolation_value": scalar_attr(float(rng.integers(-100, 100)), f64),
        "cubic_exclude": IntegerAttr.from_bool(bool(rng.integers(2))),
    }
    return Example([x], properties, None)


def either(first: Make, second: Make, rng: Rng) -> Example:
    return (first if rng.integers(2) else second)(rng)


def upsampling(kind: type[relay.UpsampleOp], rng: Rng) -> Example:
    whole = bool(rng.integers(2))
    factors = [float(rng.integers(1, 4)) if whole else float(rng.choice([0.5, 1.5, 1.7])) for _ in kind.SPATIAL]
    x = numbers(rng, "float32", [1, *sizes(rng, len(kind.SPATIAL), 2, 6), *sizes(rng, 1, 1, 9)])
    method, linear = pick(rng, "nearest_neighbor", "linear"), "bilinear" if len(factors) == 2 else "trilinear"
    corners = bool(rng.integers(2))
    mode = pick(rng, *COORDINATES) if len(factors) == 3 else "align_corners" if corners else "asymmetric"
    wanted = [int(np.floor(n * f + 0.5)) for n, f in zip(x.shape[1:-1], factors, strict=True)]
    properties: dict[str, Attribute] = {
        f"scale_{letter.lower()}": scalar_attr(f, f64) for letter, f in zip(kind.SPATIAL, factors, strict=True)
    }
    properties["method"] = StringAttr(linear if method == "linear" else method)
    if len(factors) == 3:
        properties["coordinate_transformation_mode"] = StringAttr(mode)
    else:
        properties["align_corners"] = IntegerAttr.from_bool(corners)
    return Example([x], properties, resized(x, wanted, method, mode))


def cubic(rng: Rng) -> Example:
    """Of two axes, without another route: those are compared with ONNX Runtime below."""
    x = numbers(rng, "float32", [1, *sizes(rng, 2, 1, 8), *sizes(rng, 1, 1, 9)])
    properties: dict[str, Attribute] = {
        "size": array(sizes(rng, 2, 1, 12)),
        "method": StringAttr("cubic"),
        "coordinate_transformation_mode": StringAttr(pick(rng, *COORDINATES)),
        "cubic_exclude": IntegerAttr.from_bool(bool(rng.integers(2))),
    }
    return Example([x], properties, None)


MAKERS: dict[type[TensorOp], Make] = {
    relay.Resize1dOp: partial(either, partial(resize, relay.Resize1dOp), partial(crop, relay.Resize1dOp, 1)),
    relay.Resize2dOp: partial(either, cubic, partial(crop, relay.Resize2dOp, 2)),
    relay.Resize3dOp: partial(either, partial(resize, relay.Resize3dOp), partial(crop, relay.Resize3dOp, 3)),
    relay.UpsamplingOp: partial(upsampling, relay.UpsamplingOp),
    relay.Upsampling3dOp: partial(upsampling, relay.Upsampling3dOp),
}

test_random_ones, test_many_random_ones = random_tests(MAKERS)


LINES = [
    ((2, 5, 7, 21), (19, 60), ""),
    ((1, 4, 9, 16), (9, 40), "align_corners = true"),
    ((1, 6, 5, 4), (6, 30), "half_pixel_centers = true"),
]


@pytest.mark.parametrize("dtype", ["uint8", pytest.param("int8", marks=pytest.mark.ci), "float32"])
@pytest.mark.parametrize(("shape", "wanted", "places"), LINES)
def test_columns_are_computed_once_for_a_line(shape: tuple[int, ...], wanted: tuple[int, int], places: str, dtype: str):
    given = f"{{size = array<i64: {', '.join(map(str, wanted))}>{places and ', '}{places}}}"
    element = {"uint8": "ui8", "int8": "i8", "float32": "f32"}[dtype]
    types = [f"tensor<{'x'.join(map(str, dims))}x{element}>" for dims in (shape, (shape[0], *wanted, shape[3]))]
    module = IRModule.parse(f"""func.func @main(%x: {types[0]}) -> {types[1]} {{
      %0 = relay.image.resize2d %x {given} : ({types[0]}) -> {types[1]}
      func.return %0 : {types[1]}
    }}""")
    x = numbers(np.random.default_rng(5), dtype, list(shape))
    executable = build(module)
    assert "memref.alloca" in executable.get_source("mlir")
    assert np.asarray(executable.run(x)).tobytes() == run(module, [x])[0].tobytes()


def test_columns_that_few_read_are_not():
    types = "tensor<1x40x40x21xui8>", "tensor<1x20x20x21xui8>"
    module = IRModule.parse(f"""func.func @main(%x: {types[0]}) -> {types[1]} {{
      %0 = relay.image.resize2d %x {{size = array<i64: 20, 20>}} : ({types[0]}) -> {types[1]}
      func.return %0 : {types[1]}
    }}""")
    assert "memref.alloca" not in build(module).get_source("mlir")


def onnx_resize(x: Array, wanted: Sequence[int], roi: Sequence[float] = (), **attributes: Any) -> Array:
    """ONNX Runtime's Resize of NCHW; of a region ONNX's own, as ONNX Runtime leaves out parts that lie outside."""
    onnx: Any = pytest.importorskip("onnx", reason="onnx is not installed")
    runtime: Any = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    dims = [*x.shape[:2], *wanted]
    node = helper.make_node("Resize", ["x", "roi" if roi else "", "", "sizes"], ["y"], **attributes)
    constants = [helper.make_tensor("sizes", onnx.TensorProto.INT64, [4], dims)]
    if roi:
        constants.append(helper.make_tensor("roi", float32, [8], [0, 0, *roi[:2], 1, 1, *roi[2:]]))
    graph = helper.make_graph(
        [node],
        "resize",
        [helper.make_tensor_value_info("x", float32, x.shape)],
        [helper.make_tensor_value_info("y", float32, dims)],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    if roi:
        reference: Any = pytest.importorskip("onnx.reference", reason="this onnx has no reference evaluator")
        return reference.ReferenceEvaluator(model).run(None, {"x": x})[0]
    session: Any = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


NAMES = {"nearest_neighbor": "nearest", "linear": "linear", "cubic": "cubic"}
ONNX_ROUNDINGS = {
    "floor": "floor",
    "ceil": "ceil",
    "round_prefer_floor": "round_prefer_floor",
    "round": "round_prefer_ceil",
}


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_resize2d_equals_onnx_runtime(method: str, coordinates: str):
    rng = np.random.default_rng([3, *method.encode(), *coordinates.encode()])
    for _ in range(20):
        x, wanted = numbers(rng, "float32", [1, 2, *sizes(rng, 2, 2, 9)]), sizes(rng, 2, 2, 14)
        rounding, exclude = pick(rng, *ONNX_ROUNDINGS), bool(rng.integers(2)) and method == "cubic"
        expected = onnx_resize(
            x,
            wanted,
            mode=NAMES[method],
            coordinate_transformation_mode=coordinates,
            nearest_mode=ONNX_ROUNDINGS[rounding],
            cubic_coeff_a=-0.75,
            exclude_outside=int(exclude),
        )
        properties: dict[str, Attribute] = {
            "size": array(wanted),
            "method": StringAttr(method),
            "coordinate_transformation_mode": StringAttr(coordinates),
            "rounding_method": StringAttr(rounding),
            "cubic_alpha": scalar_attr(-0.75, f64),
            "cubic_exclude": IntegerAttr.from_bool(exclude),
            "layout": StringAttr("NCHW"),
        }
        (result,) = compute(relay.Resize2dOp, [x], properties)
        assert close(result, expected, 1e-5), (x.shape, wanted, rounding, exclude)


@pytest.mark.parametrize("method", NAMES)
def test_resize2d_of_a_region_equals_onnx(method: str):
    rng = np.random.default_rng([4, *method.encode()])
    outside = 0
    for _ in range(30):
        x, wanted = numbers(rng, "float32", [1, 2, *sizes(rng, 2, 2, 9)]), [int(n) for n in rng.choice([1, 3, 5, 9], 2)]
        roi = region(rng, 2)
        expected = onnx_resize(
            x,
            wanted,
            roi,
            mode=NAMES[method],
            coordinate_transformation_mode="tf_crop_and_resize",
            nearest_mode="round_prefer_ceil",
            extrapolation_value=7.0,
            cubic_coeff_a=-0.5,
        )
        properties: dict[str, Attribute] = {
            "size": array(wanted),
            "method": StringAttr(method),
            "coordinate_transformation_mode": StringAttr("tf_crop_and_resize"),
            "rounding_method": StringAttr("round"),
            "roi": DenseArrayBase.from_list(f64, roi),
            "extrapolation_value": scalar_attr(7.0, f64),
            "layout": StringAttr("NCHW"),
        }
        (result,) = compute(relay.Resize2dOp, [x], properties)
        outside += bool((expected == 7.0).any())
        assert close(result, expected, 1e-5), (x.shape, wanted, roi)
    assert outside > 3
