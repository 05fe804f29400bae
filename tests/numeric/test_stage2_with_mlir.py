"""Stage 2 of every relay op, run by MLIR's own lowering, against the numpy meaning of stage 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import BoolAttr, FloatAttr, IntegerAttr, StringAttr, f32, i32, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array, element_type, elements, ints, scalar_attr, tensor_type
from relay.dialects.op import TensorOp
from relay.dialects.tosa import ApplyScaleOp
from relay.interpreters import run as interpret
from relay.lowering.expand_apply_scale import ExpandApplyScale
from relay.lowering.relay_to_linalg import RelayToLinalg
from relay.module import IRModule
from relay.transforms.expansions import Expand
from tests.numeric import mlir_runner
from tests.ops.examples import FILES, valid

RNG = np.random.default_rng(7)
KINDS = ["unary", "logical", "reduce", "transform", "creation", "indexing", "sort", "matmul", "pooling", "activation"]
"""Files of examples whose ops need no case here: their lowerings are verified and their compiled code is compared."""
LOWEST, HIGHEST = -(1 << 31), (1 << 31) - 1
EDGES = [LOWEST, LOWEST + 1, -(1 << 30), -100003, -3, -2, -1, 0, 1, 2, 3, 5, 100003, (1 << 30) - 1, 1 << 30, HIGHEST]


@dataclass
class Case:
    """One op on these operands; those in `constants` are part of the function."""

    op: type[TensorOp]
    operands: Sequence[Array]
    properties: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])
    constants: Sequence[int] = ()
    tolerance: float = 0.0

    def function(self, name: str) -> FuncOp:
        """A function of that op alone."""
        free = [i for i in range(len(self.operands)) if i not in self.constants]
        block = Block(arg_types=[tensor_type(self.operands[i]) for i in free])
        values: list[SSAValue] = []
        for i, array in enumerate(self.operands):
            if i in self.constants:
                constant = relay.ConstantOp.make([], {"value": elements(array)})
                block.add_op(constant)
                values.append(constant.result)
            else:
                values.append(block.args[free.index(i)])
        op = self.op.make(values, self.properties)
        block.add_ops([op, ReturnOp(*op.results)])
        return FuncOp(name, ([a.type for a in block.args], op.result_types), Region(block))

    @property
    def inputs(self) -> list[Array]:
        return [array for i, array in enumerate(self.operands) if i not in self.constants]


def numbers(dtype: Any, *shape: int) -> Array:
    """Random numbers of the dtype, over the whole range of integers."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return RNG.normal(0, 3, shape).astype(dtype)
    if dtype == np.bool_:
        return RNG.integers(0, 2, shape).astype(dtype)
    size = int(np.prod(shape))
    return np.frombuffer(RNG.bytes(size * dtype.itemsize), dtype).reshape(shape).copy()


def edges(*shape: int) -> Array:
    """i32 numbers where overflow and rounding happen, then random ones."""
    size = int(np.prod(shape))
    return np.concatenate([np.array(EDGES, np.int32), numbers(np.int32, size)])[:size].reshape(shape)


def zero_point(value: int) -> Attribute:
    return IntegerAttr(value, i32)


def elementwise() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    arithmetic = (relay.AddOp, relay.SubtractOp, relay.MultiplyOp, relay.MaximumOp, relay.MinimumOp)
    division = (relay.DivideOp, relay.FloorDivideOp)
    comparison = (relay.EqualOp, relay.GreaterOp, relay.LessOp)
    for op in (*arithmetic, *division, *comparison):
        for dtype in ("int8", "uint8", "int32", "int64", "float32"):
            a, b = numbers(dtype, 3, 16), numbers(dtype, 3, 16)
            if np.dtype(dtype).kind != "f":
                a.flat[:8] = [np.iinfo(dtype).min] * 4 + [7, 7, 0, 1]
                b.flat[:8] = [-1 % 256 if dtype == "uint8" else -1, 0, 1, 2, 2, 0, 0, 3]
            else:
                b.flat[:3] = a.flat[:3]
            cases[f"{op.name}_{dtype}"] = Case(op, [a, b])
    for op in (relay.LeftShiftOp, relay.RightShiftOp):
        for dtype in ("int8", "uint8", "int32", "int64"):
            bits = np.dtype(dtype).itemsize * 8
            cases[f"{op.name}_{dtype}"] = Case(op, [numbers(dtype, 40), RNG.integers(0, bits, 40).astype(dtype)])
    for op in (relay.NegativeOp, relay.AbsOp):
        for dtype in ("int8", "int32", "float32"):
            cases[f"{op.name}_{dtype}"] = Case(op, [edges(20) if dtype == "int32" else numbers(dtype, 300)])
    for op in (relay.RoundOp, relay.FloorOp, relay.CeilOp):
        halves = np.arange(-9, 9, dtype=np.float32) / 2
        cases[op.name] = Case(op, [np.concatenate([halves, numbers("float32", 20)])])
    positive = np.abs(numbers("float32", 4, 5)) + np.float32(0.01)
    for op in (relay.SqrtOp, relay.RsqrtOp, relay.LogOp):
        cases[op.name] = Case(op, [positive], tolerance=1e-6)
    for op in (relay.ExpOp, relay.SigmoidOp, relay.TanhOp):
        cases[op.name] = Case(op, [numbers("float32", 4, 5)], tolerance=1e-6)
    for dtype, low, high in (("int8", -5, 90), ("uint8", 3, 200), ("int32", -7, 1 << 20), ("float32", 0.0, 6.0)):
        type = element_type(dtype)
        bounds = {"a_min": scalar_attr(low, type), "a_max": scalar_attr(high, type)}
        cases[f"relay.clip_{dtype}"] = Case(relay.ClipOp, [numbers(dtype, 3, 30)], bounds)
    for source in ("bool", "int8", "uint8", "int32", "int64", "float32"):
        for target in ("bool", "int8", "uint8", "int16", "int32", "int64", "float32", "float64"):
            x = numbers(source, 30)
            if source == "float32":
                x = np.abs(x) if target == "uint8" else x
            cases[f"relay.cast_{source}_{target}"] = Case(relay.CastOp, [x], {"dtype": element_type(target)})
    cases["broadcast"] = Case(relay.AddOp, [numbers("int32", 2, 1, 3), numbers("int32", 4, 1)])
    cases["broadcast_constant"] = Case(relay.MultiplyOp, [numbers("int32", 2, 3), numbers("int32", 3)], {}, [1])
    cases["scalar_constant"] = Case(relay.SubtractOp, [numbers("uint8", 2, 3), numbers("uint8")], {}, [1])
    cases["where"] = Case(relay.WhereOp, [numbers("bool", 2, 3), numbers("int8", 2, 3), numbers("int8", 1, 3)])
    return cases


def fixed_point() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    x = edges(8, 40)
    multiplier = RNG.integers(1 << 30, 1 << 31, 40).astype(np.int32)
    multiplier[:3] = [0, 1 << 30, HIGHEST]
    shift = -RNG.integers(0, 32, 40).astype(np.int32)
    op = relay.FixedPointMultiplyOp
    for rounding in ("tflite", "tflite_single", "upward"):
        attributes = {"rounding": StringAttr(rounding)}
        cases[f"multiply_{rounding}"] = Case(op, [x, multiplier, shift], attributes)
        cases[f"multiply_{rounding}_constant"] = Case(op, [x, multiplier, shift], attributes, [1, 2])
        for exponent in (0, -1, -9, -31):
            scalars = [np.array(1518500250, np.int32), np.array(exponent, np.int32)]
            cases[f"multiply_{rounding}_by_{exponent}"] = Case(op, [x, *scalars], attributes, [1, 2])
    left = RNG.integers(-3, 4, 8).astype(np.int32)
    small = RNG.integers(-5000, 5000, (8, 4)).astype(np.int32)
    cases["multiply_left"] = Case(op, [small, multiplier[:8], left], {"axis": IntegerAttr(0, i64)}, [2])
    cases["multiply_left_unknown"] = Case(op, [small, multiplier[:8], left], {"axis": IntegerAttr(0, i64)})
    scalars = [np.array(1518500250, np.int32), np.array(4, np.int32)]
    cases["multiply_left_scalar"] = Case(op, [small, *scalars], {}, [1, 2])
    cases["high_multiply"] = Case(relay.HighMultiplyOp, [edges(16, 1), edges(16)])
    for amount in (0, 1, 7, 30, 31):
        operands = [edges(40), np.array(amount, np.int32)]
        cases[f"right_shift_{amount}"] = Case(relay.RoundingRightShiftOp, operands, {}, [1])
    cases["right_shift"] = Case(relay.RoundingRightShiftOp, [edges(32, 1), np.arange(32, dtype=np.int32)])
    sums = np.concatenate([np.array([1, 2, 3, 1 << 19, HIGHEST], np.int32), RNG.integers(1, 1 << 30, 60, np.int32)])
    cases["reciprocal"] = Case(relay.FixedPointReciprocalOp, [sums])
    for code, result in (("int8", "int8"), ("uint8", "int32"), ("int16", "int16")):
        table = numbers(result, 1 << (8 * np.dtype(code).itemsize))
        for constants in ([], [1]):
            cases[f"lookup_{code}_{len(constants)}"] = Case(relay.LookupOp, [numbers(code, 300), table], {}, constants)
    return cases


def contraction() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    zeros = {"input_zero_point": zero_point(7), "kernel_zero_point": zero_point(3)}
    regular: list[tuple[str, dict[str, Attribute]]] = [
        ("plain", {}),
        ("same", {"padding": ints([1, 1, 1, 1]), **zeros}),
        ("strided", {"padding": ints([0, 0, 1, 1]), "strides": ints([2, 2]), "input_zero_point": zero_point(-5)}),
        ("dilated", {"dilation": ints([2, 2]), "strides": ints([1, 2])}),
    ]
    for name, attributes in regular:
        kinds = (("int8", "int8"), ("uint8", "uint8"), ("float32", "float32"))
        for data, kernel in kinds:
            if data == "uint8" and "input_zero_point" in attributes:
                attributes = {**attributes, "input_zero_point": zero_point(130)}
            if data == "float32":
                attributes = {k: v for k, v in attributes.items() if "zero" not in k} | {"out_dtype": f32}
            tolerance = 1e-5 if data == "float32" else 0.0
            x = numbers(data, 2, 6, 7, 4)
            cases[f"conv_{name}_{data}"] = Case(
                relay.Conv2dOp, [x, numbers(kernel, 6, 3, 3, 4)], attributes, [1], tolerance
            )
            groups = {"groups": IntegerAttr(2, i64)}
            cases[f"grouped_{name}_{data}"] = Case(
                relay.Conv2dOp, [x, numbers(kernel, 6, 3, 3, 2)], {**attributes, **groups}, (), tolerance
            )
            depthwise = {"groups": IntegerAttr(4, i64), "kernel_layout": StringAttr("HWOI")}
            for multiplier in (1, 3):
                operands = [x, numbers(kernel, 3, 3, 4, multiplier)]
                cases[f"depthwise{multiplier}_{name}_{data}"] = Case(
                    relay.Conv2dOp, operands, {**attributes, **depthwise}, (), tolerance
                )
    wide = {"out_dtype": i64}
    cases["conv_i64"] = Case(relay.Conv2dOp, [numbers("int16", 1, 3, 3, 2), numbers("int8", 2, 2, 2, 2)], wide)
    cases["dense_i64"] = Case(relay.DenseOp, [numbers("int16", 2, 5), numbers("int8", 3, 5)], wide)
    for name, shape in (("1", (5,)), ("2", (2, 5)), ("3", (2, 3, 5))):
        cases[f"dense_{name}"] = Case(relay.DenseOp, [numbers("int8", *shape), numbers("int8", 4, 5)], zeros)
    cases["dense_mixed"] = Case(relay.DenseOp, [numbers("uint8", 2, 5), numbers("int8", 4, 5)], zeros)
    floats = [numbers("float32", 2, 5), numbers("float32", 4, 5)]
    cases["dense_float"] = Case(relay.DenseOp, floats, {"out_dtype": f32}, [1], 1e-5)
    blocks = [numbers("float32", 3, 32), numbers("uint8", 4, 2, 16), numbers("float32", 4, 2), numbers("uint8", 4, 2)]
    cases["weight_only_dense"] = Case(relay.WeightOnlyDenseOp, blocks, {}, [1, 2, 3], 1e-4)
    cases["bias"] = Case(relay.BiasAddOp, [numbers("int32", 2, 3, 4), numbers("int32", 4)])
    cases["bias_axis"] = Case(
        relay.BiasAddOp, [numbers("float32", 2, 3, 4), numbers("float32", 3)], {"axis": IntegerAttr(1, i64)}
    )
    return cases


def pool_and_reduce() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    windows: list[tuple[str, dict[str, Attribute]]] = [
        ("plain", {"pool_size": ints([2, 3])}),
        ("global", {"pool_size": ints([6, 7])}),
        ("same", {"pool_size": ints([3, 3]), "padding": ints([1, 1, 1, 1]), "strides": ints([2, 2])}),
    ]
    for name, attributes in windows:
        for dtype in ("int8", "uint8", "int16", "float32"):
            x = numbers(dtype, 2, 6, 7, 3)
            tolerance = 1e-5 if dtype == "float32" else 0.0
            cases[f"avg_{name}_{dtype}"] = Case(relay.AvgPool2dOp, [x], attributes, (), tolerance)
            cases[f"max_{name}_{dtype}"] = Case(relay.MaxPool2dOp, [x], attributes)
    for op in (relay.SumOp, relay.MaxOp, relay.MinOp):
        for dtype in ("int8", "uint8", "int32", "float32"):
            for axes, keep in ((ints([1]), False), (ints([0, -1]), True), (ints([]), False)):
                x = numbers(dtype, 3, 4, 5)
                properties = {"axis": axes, "keepdims": BoolAttr.from_bool(keep)}
                tolerance = 1e-4 if dtype == "float32" else 0.0
                cases[f"{op.name}_{dtype}_{len(axes)}"] = Case(op, [x], properties, (), tolerance)
    for op in (relay.ArgmaxOp, relay.ArgminOp):
        for dtype in ("int8", "uint8", "float32"):
            x = RNG.integers(0, 3, (3, 7, 2)).astype(dtype)
            for axis, keep, result in ((1, False, i32), (0, True, i64), (-1, False, i32)):
                properties = {"axis": ints([axis]), "keepdims": BoolAttr.from_bool(keep), "dtype": result}
                cases[f"{op.name}_{dtype}_{axis}"] = Case(op, [x], properties)
    for shape in ((7,), (2, 5), (2, 3, 4)):
        properties = {"beta": FloatAttr(0.5, f32)}
        cases[f"softmax_{len(shape)}"] = Case(relay.SoftmaxOp, [numbers("float32", *shape)], properties, (), 1e-6)
    for shape in ((2, 5), (2, 3, 4)):
        data, (gamma, beta) = numbers("float32", *shape), numbers("float32", 2, shape[-1])
        properties = {"epsilon": FloatAttr(1e-3, f32)}
        cases[f"layer_norm_{len(shape)}"] = Case(relay.LayerNormOp, [data, gamma, beta], properties, (), 1e-5)
        cases[f"rms_norm_{len(shape)}"] = Case(relay.RmsNormOp, [data, gamma], properties, (), 1e-5)
    return cases


def movement() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    x = numbers("uint8", 2, 3, 4)
    for axes in ((2, 0, 1), (0, 2, 1), (2, 1, 0)):
        cases[f"transpose_{axes}"] = Case(relay.TransposeOp, [x], {"axes": ints(axes)})
    for shape in ((6, 4), (24,), (2, 12), (2, 3, 2, 2), (3, 2, 4), (4, 6), (1, 2, 3, 4), (2, 3, 4), (2, 1, 3, 4, 1)):
        cases[f"reshape_{shape}"] = Case(relay.ReshapeOp, [x], {"newshape": ints(shape)})
    cases["reshape_scalar"] = Case(relay.ReshapeOp, [numbers("int32", 1, 1)], {"newshape": ints([])})
    cases["reshape_of_scalar"] = Case(relay.ReshapeOp, [numbers("int32")], {"newshape": ints([1, 1])})
    for axis, others in ((0, (1, 3, 4)), (1, (2, 2, 4)), (-1, (2, 3, 1))):
        properties = {"axis": IntegerAttr(axis, i64)}
        cases[f"concatenate_{axis}"] = Case(relay.ConcatenateOp, [x, numbers("uint8", *others), x], properties)
    slices = [("all", (0, 0, 0), (2, 3, 4), (1, 1, 1)), ("part", (1, 0, 1), (2, 3, 4), (1, 2, 2))]
    slices += [("back", (1, 2, 3), (-1, 0, -1), (-1, -1, -2)), ("mixed", (0, 2, 0), (2, -1, 3), (1, -1, 1))]
    for name, begin, end, strides in slices:
        properties = {"begin": ints(begin), "end": ints(end), "strides": ints(strides)}
        cases[f"slice_{name}"] = Case(relay.StridedSliceOp, [x], properties)
    for dtype in ("int32", "int64", "uint8", "int8"):
        indices = RNG.integers(0 if dtype == "uint8" else -2, 6, (2, 5)).astype(dtype)
        for axis in (0, 1, -1):
            cases[f"take_{dtype}_{axis}"] = Case(relay.TakeOp, [x, indices], {"axis": IntegerAttr(axis, i64)})
        cases[f"gather_nd_{dtype}"] = Case(relay.GatherNdOp, [x, indices[:, :2]])
    cases["take_scalar"] = Case(relay.TakeOp, [x, np.array(1, np.int32)], {"axis": IntegerAttr(1, i64)})
    cases["gather_nd_all"] = Case(relay.GatherNdOp, [x, np.array([[1, 2, 3], [0, 9, -4]], np.int32)])
    cases["broadcast_to"] = Case(relay.BroadcastToOp, [numbers("int8", 3, 1)], {"shape": ints([2, 3, 4])})
    for dtype, value in (("int8", -3), ("uint8", 200), ("float32", 1.5)):
        properties = {"pad_width": ints([0, 1, 2, 0, 1, 1]), "pad_value": scalar_attr(value, element_type(dtype))}
        cases[f"pad_{dtype}"] = Case(relay.PadOp, [numbers(dtype, 2, 3, 4)], properties)
    for dtype in ("int8", "uint8", "int16", "float32"):
        for method in ("linear", "nearest_neighbor"):
            for align, half in ((0, 0), (1, 0), (0, 1)):
                for size in ((7, 5), (2, 3)):
                    properties = {
                        "size": ints(size),
                        "method": StringAttr(method),
                        "align_corners": BoolAttr.from_bool(bool(align)),
                        "half_pixel_centers": BoolAttr.from_bool(bool(half)),
                    }
                    name = f"resize_{method}_{dtype}_{align}{half}_{size[0]}"
                    cases[name] = Case(relay.Resize2dOp, [numbers(dtype, 2, 4, 4, 3)], properties)
    return cases


KINDS_OF_CASES = {make.__name__: make() for make in (elementwise, fixed_point, contraction, pool_and_reduce, movement)}
CASES = {name: case for cases in KINDS_OF_CASES.values() for name, case in cases.items()}


def check(name: str, got: Sequence[Array], want: Sequence[Array], tolerance: float) -> None:
    assert len(got) == len(want), name
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype and g.shape == w.shape, name
        if tolerance:
            np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance, err_msg=name)
        else:
            np.testing.assert_array_equal(g, w, name)


@mlir_runner.needs_mlir
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[] if kind == "elementwise" else [pytest.mark.ci]) for kind in KINDS_OF_CASES],
)
def test_stage2_computes_what_stage1_means(kind: str):
    """Run by MLIR, as it is and with our expansion of `tosa.apply_scale`."""
    level1 = IRModule()
    calls: dict[str, mlir_runner.Call] = {}
    for number, (name, case) in enumerate(KINDS_OF_CASES[kind].items()):
        function = f"case{number}"
        level1[function] = case.function(function)
        calls[name] = mlir_runner.Call(function, case.inputs, mlir_runner.results_of(level1, function))
    level1.verify()
    expected = {name: list(interpret(level1, call.inputs, call.function)) for name, call in calls.items()}
    level2 = RelayToLinalg()(level1)
    level2.verify()
    mlir_runner.verify(level2)
    for name, got in zip(calls, mlir_runner.run(level2, list(calls.values())), strict=True):
        check(name, got, expected[name], CASES[name].tolerance)
    scaling = IRModule()
    for call in calls.values():
        if any(isinstance(op, ApplyScaleOp) for op in level2[call.function].walk()):
            scaling[call.function] = level2[call.function]
    scaled = {name: call for name, call in calls.items() if call.function in scaling.functions}
    if kind == "fixed_point":
        assert {name for name, case in CASES.items() if case.op is relay.FixedPointMultiplyOp} <= set(scaled)
        for name, got in zip(scaled, mlir_runner.run(ExpandApplyScale()(scaling), [*scaled.values()]), strict=True):
            check(name, got, expected[name], CASES[name].tolerance)


def test_every_relay_op_has_a_case():
    lowered = "".join(valid(path) for path in FILES if path.stem in KINDS)
    seen = {case.op for case in CASES.values()} | {op for op in relay.Relay.operations if f"{op.name} " in lowered}
    assert not set(relay.Relay.operations) - seen - {relay.ConstantOp} - Expand.REPLACES
