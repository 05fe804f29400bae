"""Products of floats by weights of few bits in blocks, compiled: against sums in float64, and against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.parser import Parser

import relay
from relay.compile.entry import build
from relay.dialects import relay as dialect
from relay.dialects.attributes import Array
from relay.errors import Unsupported
from relay.exploration.tuning import DrawSchedules, scheduled
from relay.interpreters import run
from relay.lowering.scheduling.record import ATTRIBUTE
from relay.passes import Pass, PassContext, PassInstrument
from relay.runtime import processor
from relay.runtime.opencl_driver import driver
from relay.target import CpuTarget
from tests.marks import ci
from tests.numeric.c_sources import Exported
from tests.numeric.compiled_modules import Net
from tests.numeric.gpu_models import Emulated
from tests.numeric.test_schedule_attributes import with_pass

Size = tuple[int, int, int, int]
SIZES: list[Size] = [
    (1, 64, 4, 32),
    (1, 70, 2, 32),
    (1, 150, 2, 32),
    (9, 33, 3, 16),
    (17, 130, 2, 64),
    (77, 40, 9, 32),
    (1, 5, 1, 16),
    (2, 48, 2, 128),
    (3, 16, 2, 24),
]
"""Rows, channels, blocks, and weights of a block: whole tiles and not; the last of a block that is no whole words."""
FEW = [SIZES[1], SIZES[3], SIZES[8]]
SOME = pytest.mark.parametrize("sizes", [FEW, pytest.param(SIZES, marks=pytest.mark.ci)], ids=["few", "all"])


def drawn(net: Net, size: Size, bits: int, zero_points: bool) -> tuple[Array, list[Array]]:
    """Data; codes, scales and zero points, which are one number, or any."""
    rows, channels, blocks, block = size
    codes = net.rng.integers(0, 1 << bits, (channels, blocks, block)).astype(np.uint8)
    scales = (net.rng.random((channels, blocks)) + 0.1).astype(np.float32)
    zeros = np.full((channels, blocks), 1 << (bits - 1), np.uint8)
    if zero_points:
        zeros = net.rng.integers(0, 1 << bits, (channels, blocks)).astype(np.uint8)
    return net.numbers("float32", rows, blocks * block), [codes, scales, zeros]


def exact(data: Array, codes: Array, scales: Array, zeros: Array) -> Array:
    weights = (codes.astype(np.float64) - zeros[..., None]) * scales[..., None]
    return data.astype(np.float64) @ weights.reshape(len(codes), -1).T


def products(bits: int, zero_points: bool, activation: bool, sizes: Sequence[Size] = SIZES) -> tuple[Net, list[Array]]:
    """Products of these sizes, and their results without rounding."""
    net, wanted = Net(80), list[Array]()
    for size in sizes:
        data, weights = drawn(net, size, bits, zero_points)
        sums = net.add(dialect.WeightOnlyDenseOp, [net.argument(data), *map(net.constant, weights)], {})
        net.result(f"{size}", net.relu(sums, size[1]) if activation else sums)
        wanted.append(exact(data, *weights))
    return net, wanted


@pytest.mark.parametrize(
    ("bits", "zero_points"),
    [
        pytest.param(n, zero, marks=() if (n, zero) == (4, False) else pytest.mark.ci)
        for n, zero in product((2, 4, 8), (False, True))
    ],
)
def test_sums_are_near_those_in_float64(bits: int, zero_points: bool):
    net, wanted = products(bits, zero_points, False)
    module = net.module()
    interpreted, compiled = run(module, net.inputs), relay.build(module).run(*net.inputs)
    assert isinstance(compiled, tuple)
    for found in (interpreted, compiled):
        for one, best in zip(found, wanted, strict=True):
            assert np.abs(np.asarray(one) - best).max() <= 1e-6 * np.abs(best).max()


FLOATS = {"float8_e4m3fn": 8, "float8_e5m2": 8, "float8_e4m3fnuz": 8, "float6_e3m2fn": 6, "float4_e2m1fn": 4}
"""Their bits."""


@SOME
@pytest.mark.parametrize("features", ["", *ci(("+avx2,+fma", "+sse2"))])
@pytest.mark.parametrize("name", ["float8_e4m3fn", *ci([*FLOATS][1:])])
def test_codes_that_are_floats(name: str, features: str, sizes: list[Size]):
    net, wanted, dtype = Net(85), list[Array](), np.dtype(getattr(ml_dtypes, name))
    every = np.arange(1 << FLOATS[name], dtype=np.uint8).view(dtype)
    for size in sizes:
        data, (codes, scales, _) = drawn(net, size, 8, False)
        numbers = net.rng.choice(every[np.isfinite(every.astype(np.float32))], codes.shape)
        weights = [numbers, scales, np.zeros(scales.shape, np.uint8)]
        net.result(f"{size}", net.add(dialect.WeightOnlyDenseOp, [net.argument(data), *map(net.constant, weights)], {}))
        wanted.append(exact(data, *weights))
    module, target = net.module(), f"x86_64-unknown-linux-gnu -mattr={features}" if features else "llvm"
    compiled = relay.build(module, target).run(*net.inputs)
    assert isinstance(compiled, tuple)
    for found in (run(module, net.inputs), compiled):
        for one, best in zip(found, wanted, strict=True):
            assert np.abs(np.asarray(one) - best).max() <= 1e-6 * np.abs(best).max()


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_a_code_that_is_no_number(name: str):
    net, dtype = Net(86), np.dtype(getattr(ml_dtypes, name))
    codes, scales = np.ones((20, 2, 32), dtype), np.ones((20, 2), np.float32)
    codes[7, 1, 3] = np.nan
    weights = [codes, scales, np.zeros(scales.shape, np.uint8)]
    data = net.numbers("float32", 3, 64)
    net.result("", net.add(dialect.WeightOnlyDenseOp, [net.argument(data), *map(net.constant, weights)], {}))
    module = net.module()
    found, (wanted,) = np.isnan(np.asarray(relay.build(module).run(*net.inputs))), run(module, net.inputs)
    assert np.array_equal(found, np.isnan(wanted)) and found[:, 7].all() and not found[:, 6].any()


@SOME
@pytest.mark.parametrize("seed", [0, *ci((1, 2))])
def test_other_tiles(seed: int, sizes: list[Size]):
    """Tiles, and ways to make codes floats, drawn from all that are possible."""
    net, wanted = products(4, True, False, sizes)
    with PassContext(opt_level=1):  # LLVM is quick there
        found = build(net.module(), pipeline=with_pass(DrawSchedules(seed))).run(*net.inputs)
    assert isinstance(found, tuple)
    for one, best in zip(found, wanted, strict=True):
        assert np.abs(np.asarray(one) - best).max() <= 1e-6 * np.abs(best).max()


@dataclass(frozen=True)
class OneRowByPanels(Pass):
    """Have weights of one row become floats in scratch memory, those of two vectors of channels at once."""

    name = "one-row-by-panels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in scheduled(op):
            text = (
                '{ops = [{strategy = "weight_only", tile = array<i64: 1, 2>, parts = 0 : i64, panel = 32 : i64, '
                "table = false, fused = true, masks = false}]}"
            )
            function.attributes[ATTRIBUTE] = Parser(ctx, text).parse_attribute()


@pytest.mark.parametrize("channels", [16, 32, 70, 150])
def test_one_row_by_panels(channels: int):
    net = Net(80)
    data, weights = drawn(net, (1, channels, 2, 32), 4, True)
    net.result("sums", net.add(dialect.WeightOnlyDenseOp, [net.argument(data), *map(net.constant, weights)], {}))
    found, best = build(net.module(), pipeline=with_pass(OneRowByPanels())).run(*net.inputs), exact(data, *weights)
    assert np.abs(np.asarray(found) - best).max() <= 1e-6 * np.abs(best).max()


@SOME
@pytest.mark.parametrize("features", ["+avx2,+fma", *ci(("", "+sse2"))])
def test_what_follows_is_in_the_same_kernel(features: str, sizes: list[Size]):
    products(4, True, True, sizes)[0].check(f"x86_64-unknown-linux-gnu -mattr={features}" if features else "llvm")


@SOME
def test_what_follows_is_in_the_same_kernel_without_vectors(sizes: list[Size], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(CpuTarget, "has_vectors", False)
    with PassContext(instruments=[PassInstrument()]):  # nothing that an instrument sees is taken from the cache
        products(4, True, True, sizes)[0].check()


@SOME
@pytest.mark.parametrize("target", ["cuda", *ci(("cuda -arch=sm_90a", "opencl"))])
def test_each_is_one_launch_on_gpus(target: str, sizes: list[Size]):
    """Codes become floats in registers: no launch writes weights of floats."""
    net, wanted = products(4, True, False, sizes)
    if target == "opencl":
        try:
            driver(0)
        except Unsupported as error:
            pytest.skip(str(error))
        executable = relay.build(net.module(), target)
        found = executable.run(*net.inputs)
        assert isinstance(found, tuple)
        results = [np.asarray(one) for one in found]
    else:
        model = Emulated(net.module(), target)
        executable, results = model.executable, model.run(net.inputs)
    assert len(executable.graph["device"]["launches"]) == len(sizes)
    for one, best in zip(results, wanted, strict=True):
        assert np.abs(one - best).max() <= 1e-6 * np.abs(best).max()


def test_words_hold_all_codes():
    """A file of a product by codes of 4 bits is less than a byte for each weight."""
    net = Net(81)
    data, weights = drawn(net, (1, 1024, 32, 32), 4, False)
    net.result("", net.add(dialect.WeightOnlyDenseOp, [net.argument(data), *map(net.constant, weights)], {}))
    target = "x86_64-unknown-linux-gnu -mcpu=cascadelake"  # dot products of bytes leave out the zero points
    assert len(relay.build(net.module(), target).to_bytes()) < 0.8 * weights[0].size


@SOME
def test_threads_share_the_channels(sizes: list[Size]):
    net, wanted = products(4, False, False, sizes)
    model = relay.build(net.module(), num_threads=2)
    found = model.run(*net.inputs)
    assert isinstance(found, tuple)
    for one, best in zip(found, wanted, strict=True):
        assert np.abs(np.asarray(one) - best).max() <= 1e-6 * np.abs(best).max()


@SOME
@pytest.mark.parametrize("features", ["", "+avx2,+fma,+avxvnni", pytest.param("+avx2,+fma", marks=pytest.mark.ci)])
def test_data_of_eight_bits(features: str, sizes: list[Size]):
    """A promise that data are codes times a scale of their block: these are multiplied, where bytes can be."""
    if missing := processor.lacks(frozenset(features.replace("+", "").split(",")) - {""}):
        pytest.skip(f"this processor lacks {', '.join(missing)}")
    rng, net, wanted = np.random.default_rng(5), Net(82), list[Array]()
    for rows, channels, blocks, block in sizes:
        data, weights = drawn(net, (rows, channels, blocks, block), 4, rows % 2 == 0)
        codes = rng.integers(-126, 127, (rows, blocks, block)).astype(np.float32)
        codes[..., 0] = 127
        steps = rng.random((rows, blocks, 1)).astype(np.float32) + np.float32(0.01)
        data = (codes * steps).reshape(rows, -1)
        given = [net.argument(data), *map(net.constant, weights)]
        net.result(f"{channels}", net.add(dialect.WeightOnlyDenseOp, given, {"data_bits": IntegerAttr(8, i64)}))
        wanted.append(exact(data, *weights))
    target = f"x86_64-unknown-linux-gnu -mattr={features}" if features else "llvm"
    found = relay.build(net.module(), target=target).run(*net.inputs)
    assert isinstance(found, tuple)
    for one, best in zip(found, wanted, strict=True):
        assert np.abs(np.asarray(one) - best).max() <= 1e-6 * np.abs(best).max()


@pytest.mark.parametrize("features", ["", "+avx2,+fma"])
@pytest.mark.parametrize("code", [-127, pytest.param(126.5, marks=pytest.mark.ci), 127])
def test_the_largest_sums_of_a_block_fit(features: str, code: float):
    """All weights 15, and all data alike: sums of products of 4 bits by bytes are as large as they can be."""
    net, wanted = Net(84), list[Array]()
    for rows, block in ((1, 16), (1, 32), (5, 32), (2, 128)):
        shape = (17, 2, block)
        weights = [np.full(shape, 15, np.uint8), np.ones(shape[:2], np.float32), np.zeros(shape[:2], np.uint8)]
        data = np.full((rows, 2 * block), code, np.float32)
        data[:, ::block] = 127
        promise = {"data_bits": IntegerAttr(8, i64)} if code == round(code) else {}
        net.result(f"{rows} {block}", net.add(
            dialect.WeightOnlyDenseOp, [net.argument(data), *map(net.constant, weights)], promise))  # fmt: skip
        wanted.append(exact(data, *weights))
    found = relay.build(net.module(), f"x86_64-unknown-linux-gnu -mattr={features}" if features else "llvm")
    results = found.run(*net.inputs)
    assert isinstance(results, tuple)
    for one, best in zip(results, wanted, strict=True):
        assert np.abs(np.asarray(one) - best).max() <= 1e-6 * np.abs(best).max()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_stays_none(bad: float):
    """In its row; the others are as without it, and so are numbers near 0 and rows of zeros."""
    net = Net(83)
    data, weights = drawn(net, (6, 33, 2, 32), 4, False)
    data[1, 5], data[2], data[3], data[4] = bad, 0, data[3] * np.float32(1e-30), data[4] * np.float32(1e30)
    net.result("", net.add(dialect.WeightOnlyDenseOp, [net.argument(data), *map(net.constant, weights)], {}))
    found, best = np.asarray(relay.build(net.module()).run(*net.inputs)), exact(data, *weights)
    assert not np.isfinite(found[1]).any()
    rows = [0, 2, 3, 4, 5]
    largest = np.abs(best[rows]).max(axis=1, keepdims=True)
    assert (np.abs(found[rows] - best[rows]) <= 1e-6 * largest).all()


@pytest.mark.parametrize(
    ("bits", "block", "zero_points", "level"),
    [
        pytest.param(*case, level, marks=() if (level == 4) == (number % 3 == 0) else pytest.mark.ci)
        for number, case in enumerate([(4, 32, False), (4, 16, True), (8, 128, True), (2, 64, False)])
        for level in (0, 4)
    ],
)
def test_onnx_runtime(bits: int, block: int, zero_points: bool, level: int):
    onnx = pytest.importorskip("onnx", reason="makes the model")
    runtime = pytest.importorskip("onnxruntime", reason="the oracle")
    rng, depth, channels, rows = np.random.default_rng(3), 2 * block, 40, 3
    count = depth // block
    arrays = {
        "w": rng.integers(0, 256, (channels, count, block * bits // 8), np.uint8),
        "s": (rng.random((channels, count)) + 0.1).astype(np.float32),
    }
    if zero_points:
        arrays["z"] = rng.integers(0, 256, (channels, -(-count * bits // 8)), np.uint8)
    node = onnx.helper.make_node(
        "MatMulNBits", ["x", *arrays], ["y"], domain="com.microsoft", K=depth, N=channels, bits=bits, block_size=block,
        accuracy_level=level,
    )  # fmt: skip
    infos = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [rows, size])
        for name, size in (("x", depth), ("y", channels))
    ]
    initial = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = onnx.helper.make_graph([node], "g", infos[:1], infos[1:], initial)
    opsets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("com.microsoft", 1)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    module = relay.frontend.from_onnx(model)
    assert "relay.nn.weight_only_dense" in str(module)
    x = rng.standard_normal((rows, depth)).astype(np.float32)
    try:
        wanted = runtime.InferenceSession(model).run(None, {"x": x})[0]
    except runtime.capi.onnxruntime_pybind11_state.Fail as error:
        pytest.skip(f"ONNX Runtime does not take it: {error}")
    found = relay.build(module)(x)
    assert np.abs(np.asarray(found) - wanted).max() <= 1e-5 * np.abs(wanted).max()


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        pytest.param(kind, way, marks=() if number % 3 == place else pytest.mark.ci)
        for number, kind in enumerate(("INT4", "UINT4", "INT8", "UINT8"))
        for place, way in enumerate(("MatMul", "Transpose", "Gemm"))
    ],
)
def test_dequantized_weights_of_a_product(kind: str, way: str):
    """DequantizeLinear in blocks, then MatMul, as ONNX Runtime's tools also write such models; of weights [units,
    inputs] by way of a transpose, or by Gemm."""
    onnx = pytest.importorskip("onnx", reason="makes the model")
    runtime = pytest.importorskip("onnxruntime", reason="the oracle")
    rng, number = np.random.default_rng(6), onnx.TensorProto.DataType.Value(kind)
    dtype, low, bits = onnx.helper.tensor_dtype_to_np_dtype(number), 0, 4 if "4" in kind else 8
    low = 0 if kind[0] == "U" else -(1 << (bits - 1))
    codes, zeros = (rng.integers(low, low + (1 << bits), shape).astype(dtype) for shape in ((96, 10), (3, 10)))
    arrays = {"w": codes, "s": rng.random((3, 10), np.float32), "z": zeros}
    arrays = arrays if way == "MatMul" else {name: np.ascontiguousarray(array.T) for name, array in arrays.items()}
    initial = [
        onnx.helper.make_tensor(name, number if name != "s" else 1, array.shape, array)
        for name, array in arrays.items()
    ]
    axis, outer = int(way != "MatMul"), [5] if way == "Gemm" else [2, 5]
    products = {
        "MatMul": [onnx.helper.make_node("MatMul", ["x", "d"], ["y"])],
        "Transpose": [
            onnx.helper.make_node("Transpose", ["d"], ["t"], perm=[1, 0]),
            onnx.helper.make_node("MatMul", ["x", "t"], ["y"]),
        ],
        "Gemm": [onnx.helper.make_node("Gemm", ["x", "d"], ["y"], transB=1)],
    }
    dequantize = onnx.helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"], axis=axis, block_size=32)
    nodes = [dequantize, *products[way]]
    infos = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [*outer, size])
        for name, size in (("x", 96), ("y", 10))
    ]
    graph = onnx.helper.make_graph(nodes, "g", infos[:1], infos[1:], initial)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)
    module = relay.frontend.from_onnx(model.SerializeToString())
    ops = [op.name for op in module["main"].walk() if op.name not in ("relay.constant", "func.func", "func.return")]
    assert ops == ["relay.nn.weight_only_dense"]
    x = rng.standard_normal((*outer, 96), np.float32)
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL  # else data are rounded to 8 bits
    (wanted,) = runtime.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})
    assert np.abs(np.asarray(relay.build(module).run(x)) - wanted).max() <= 1e-5 * np.abs(wanted).max()


@pytest.mark.parametrize("scales", [(), (10,), (3, 10)])
@pytest.mark.parametrize("kind", ["FLOAT8E4M3FN", "FLOAT8E5M2", "FLOAT4E2M1"])
def test_dequantized_floats_of_few_bits(kind: str, scales: tuple[int, ...]):
    """For all, for each column, in blocks: the weights stay as they are in the file."""
    onnx = pytest.importorskip("onnx", reason="makes the model")
    rng, number = np.random.default_rng(7), onnx.TensorProto.DataType.Value(kind)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(number)
    codes, scale = rng.standard_normal((96, 10)).astype(dtype), np.asarray(rng.random(scales) + 0.1, np.float32)
    initial = [
        onnx.helper.make_tensor("w", number, codes.shape, codes.astype(np.float32)),
        onnx.numpy_helper.from_array(scale, "s"),
    ]
    given = {0: {}, 1: {"axis": 1}, 2: {"axis": 0, "block_size": 32}}[len(scales)]
    nodes = [
        onnx.helper.make_node("DequantizeLinear", ["w", "s"], ["d"], **given),
        onnx.helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    infos = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in (("x", [5, 96]), ("y", [5, 10]))
    ]
    graph = onnx.helper.make_graph(nodes, "g", infos[:1], infos[1:], initial)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 23)], ir_version=11)
    module = relay.frontend.from_onnx(model.SerializeToString())
    assert "relay.nn.weight_only_dense" in str(module) and "relay.nn.dense" not in str(module)
    x = rng.standard_normal((5, 96), np.float32)
    spread = np.repeat(scale, 32, axis=0) if len(scales) == 2 else scale
    wanted = x.astype(np.float64) @ (codes.astype(np.float64) * spread)
    assert np.abs(np.asarray(relay.build(module).run(x)) - wanted).max() <= 1e-6 * np.abs(wanted).max()


def test_a_table_of_embeddings_is_as_small_as_its_codes():
    onnx = pytest.importorskip("onnx", reason="makes the model")
    rng = np.random.default_rng(4)
    arrays = {"t": rng.integers(0, 256, (3000, 32), np.uint8), "s": rng.random((3000, 2), np.float32)}
    initial = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    node = onnx.helper.make_node(
        "GatherBlockQuantized", ["t", "i", "s"], ["y"], domain="com.microsoft", bits=4, block_size=32, quantize_axis=1
    )
    infos = [
        onnx.helper.make_tensor_value_info("i", onnx.TensorProto.INT64, [2]),
        onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 64]),
    ]
    graph = onnx.helper.make_graph([node], "g", infos[:1], infos[1:], initial)
    opsets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("com.microsoft", 1)]
    model = relay.build(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())
    assert len(model.to_bytes()) < 3000 * 64 * 4 / 2
    rows = np.asarray(model.run(np.array([7, -1])))
    for row, at in zip(rows, (7, 2999), strict=True):
        codes = np.stack([arrays["t"][at] & 15, arrays["t"][at] >> 4], axis=1).reshape(2, 32).astype(np.float32) - 8
        assert np.array_equal(row, (codes * arrays["s"][at][:, None]).reshape(-1))


@SOME
def test_exported_c_has_weights_of_floats(sizes: list[Size], tmp_path: Path):
    net, wanted = products(4, True, False, sizes)
    exported = Exported(net.module(), tmp_path)
    exported.compile()
    for found, best in zip(exported.run(net.inputs), wanted, strict=True):
        assert np.abs(found - best).max() <= 1e-5 * np.abs(best).max()


def test_rows_of_codes_that_end_within_a_byte_are_looked_up_for_any_number_of_indices():
    litert_models = pytest.importorskip("tests.numeric.litert_models", reason="LiteRT's schema builds the file")
    rng, T = np.random.default_rng(3), litert_models.T
    codes = rng.integers(-8, 8, (6, 5)).astype(np.int8)
    tensors = [T([4], "int32"), T(codes, "int4", [0.25])]
    case = litert_models.Case("EMBEDDING_LOOKUP", tensors, [T([4, 5], "float32")], "", {}, 5, (), {})
    exe = relay.build(case.model(), shapes={"in0": ("n",)})
    for count in (1, 7):
        places = rng.integers(0, 6, count).astype(np.int32)
        assert np.array_equal(np.asarray(exe.run(places)), codes[places] * np.float32(0.25))
