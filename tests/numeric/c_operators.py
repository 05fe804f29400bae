"""One random case of every op that compiler `c` writes, all in one function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import BoolAttr, FloatAttr, IntegerAttr, StringAttr, f32, f64, i32, i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, element_type, elements, ints, scalar_attr
from relay.dialects.op import TensorOp
from relay.dialects.op import shape as shape_of
from tests.numeric.compiled_modules import Net

Properties = dict[str, Attribute]
BINARY: tuple[type[relay.BinaryOp], ...] = (
    relay.AddOp, relay.SubtractOp, relay.MultiplyOp, relay.DivideOp, relay.FloorDivideOp, relay.MaximumOp,
    relay.MinimumOp, relay.LeftShiftOp, relay.RightShiftOp, relay.EqualOp, relay.GreaterOp, relay.LessOp,
)  # fmt: skip
UNARY: tuple[type[relay.UnaryOp], ...] = (
    relay.NegativeOp, relay.AbsOp, relay.SqrtOp, relay.RsqrtOp, relay.ExpOp, relay.Expm1Op, relay.LogOp,
    relay.SigmoidOp, relay.TanhOp, relay.RoundOp, relay.FloorOp, relay.CeilOp,
)  # fmt: skip
RESCALES = ("tflite", "tflite_single", "upward", "tonearest")
REALS = ("f64_away", "f32_even")
LONG = ("tflite", "f64_away")
"""Roundings of sums of 64 bits."""
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
CODES = ("int8", "uint8", "int16")


def integer(value: int) -> IntegerAttr:
    return IntegerAttr(value, i32)


def real(value: float) -> FloatAttr:
    return FloatAttr(value, f32)


def axis(value: int) -> IntegerAttr:
    return IntegerAttr(value, i64)


class Cases(Net):
    """Every op with random operands, shapes and properties; `names` are those of the results."""

    def pick(self, *choices: int) -> int:
        return int(self.rng.choice(choices))

    def between(self, low: int, high: int) -> int:
        """A number, both ends included."""
        return int(self.rng.integers(low, high + 1))

    def arg(self, dtype: str, *shape: int) -> SSAValue:
        """A new argument."""
        if dtype == "bool":
            return self.argument(self.rng.integers(0, 2, shape).astype(np.bool_))
        if dtype == "float64":
            return self.argument(self.rng.standard_normal(shape))
        if dtype == "uint64":
            return self.argument(self.rng.integers(0, (1 << 64) - 1, shape, np.uint64, endpoint=True))
        return self.argument(self.numbers(dtype, *shape))

    def case(
        self,
        op: type[TensorOp],
        operands: Sequence[SSAValue],
        properties: Mapping[str, Attribute] | None = None,
        note: str = "",
    ) -> SSAValue:
        """Add an op; all its results are compared."""
        new = op.make(operands, properties)
        self.block.add_op(new)
        for result in new.results:
            self.result(f"{op.name} {note} {len(self.results)}", result)
        return new.results[0]

    def scale(self) -> float:
        return float(self.rng.uniform(0.001, 2))

    def zero_point(self, dtype: str) -> int:
        info = np.iinfo(dtype)
        return 0 if dtype == "int16" else self.between(int(info.min), int(info.max))

    def near_middle(self, dtype: str, most: int) -> int:
        """A zero point that lies at most so far from the middle of the type's range."""
        middle = 1 << 8 * np.dtype(dtype).itemsize - 1 if np.dtype(dtype).kind == "u" else 0
        return middle + self.between(-most, most)

    def rescaling(self, axis_size: int | None = None, low: int = -12, high: int = 1) -> Properties:
        """Multiplier and shift, scalar or a vector."""
        shape = () if axis_size is None else (axis_size,)
        multiplier = self.rng.integers(1 << 30, 1 << 31, shape).astype(np.int32)
        shift = self.rng.integers(low, high + 1, shape).astype(np.int32)
        if axis_size is None:
            return {"multiplier": integer(int(multiplier)), "shift": integer(int(shift))}
        return {"multiplier": elements(multiplier), "shift": elements(shift)}

    def requantisation(self, target: str, rounding: str, size: int | None, low: int = -12) -> Properties:
        """The properties of a requantisation to this type, per tensor or with `size` numbers."""
        properties: Properties = {
            "input_scale": real(0.01), "output_scale": real(0.5), "out_dtype": element_type(target),
            "output_zero_point": integer(self.near_middle(target, 20)), "rounding": StringAttr(rounding),
            **self.rescaling(size, low, low + 6),
        }  # fmt: skip
        if self.between(0, 1):
            properties |= {"min": integer(self.between(-300, 0)), "max": integer(self.between(0, 300))}
        if rounding in REALS:
            factor = self.rng.uniform(1e-6, 1e-2, size or ())
            properties["real_multiplier"] = elements(factor) if size else FloatAttr(float(factor), f64)
        return properties

    def weights(self, dtype: str, *shape: int) -> SSAValue:
        """A constant kernel."""
        return self.constant(self.numbers(dtype, *shape) if dtype != "float64" else self.rng.standard_normal(shape))

    def biases(self, dtype: str, count: int) -> Array:
        """A bias, with sums at the ends of the range."""
        if dtype[0] == "f":
            return self.rng.standard_normal(count).astype(dtype)
        bias = self.rng.integers(-20000, 20000, count).astype(dtype)
        bias[0] = np.iinfo(dtype).max if dtype == "int32" else bias[0]
        return bias


def elementwise(net: Cases) -> None:
    shapes = [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (3, 1)), ((1, 4), (5, 1)), ((), (3,))]
    for op in BINARY:
        floats = () if op in (relay.LeftShiftOp, relay.RightShiftOp) else ("float32", "float64")
        for dtype in (*net.rng.choice(INTEGERS, 3, replace=False), *floats):
            left, right = shapes[net.between(0, 3)]
            lhs, rhs = net.arg(str(dtype), *left), net.arg(str(dtype), *right)
            if op in (relay.LeftShiftOp, relay.RightShiftOp):
                bits = 8 * np.dtype(str(dtype)).itemsize
                rhs = net.argument(net.rng.integers(0, bits, right).astype(str(dtype)))
            net.case(op, [lhs, rhs], note=str(dtype))
    for op in UNARY:
        for dtype in ("float32", "float64", *(("int8", "uint16", "int32", "int64") if not op.FLOAT_ONLY else ())):
            value = net.arg(dtype, 3, 7)
            if op in (relay.SqrtOp, relay.RsqrtOp, relay.LogOp):
                value = net.argument(net.rng.uniform(0.01, 9, (3, 7)).astype(dtype))
            net.case(op, [value], note=dtype)
    net.case(relay.WhereOp, [net.arg("bool", 2, 1), net.arg("int16", 2, 5), net.arg("int16", 5)])
    for dtype, low, high in (("int8", -3, 60), ("uint8", 5, 200), ("float32", -0.25, 0.5), ("int64", -(1 << 62), 7)):
        type = element_type(dtype)
        bounds: Properties = {"a_min": scalar_attr(low, type), "a_max": scalar_attr(high, type)}
        net.case(relay.ClipOp, [net.arg(dtype, 4, 4)], bounds)
    for source in ("int8", "uint8", "int32", "int64", "float32", "bool"):
        for target in ("int8", "uint8", "int16", "int64", "float32", "float64", "bool"):
            net.case(relay.CastOp, [net.arg(source, 9)], {"dtype": element_type(target)}, f"{source}->{target}")
    net.case(relay.BiasAddOp, [net.arg("int32", 2, 3, 4), net.arg("int32", 3)], {"axis": axis(1)})
    net.case(relay.BiasAddOp, [net.arg("float32", 2, 3, 4), net.arg("float32", 4)])


def fixed_point(net: Cases) -> None:
    for rounding in RESCALES:
        for shape in ((), (5,)):
            multiplier = net.argument(net.rng.integers(1 << 30, 1 << 31, shape).astype(np.int32))
            shift = net.argument(net.rng.integers(-31, 31, shape).astype(np.int32))
            operands = [net.arg("int32", 3, 5), multiplier, shift]
            net.case(relay.FixedPointMultiplyOp, operands, {"rounding": StringAttr(rounding)}, rounding)
    net.case(relay.HighMultiplyOp, [net.arg("int32", 3, 5), net.arg("int32", 5)])
    amounts = net.argument(net.rng.integers(0, 32, (3, 1)).astype(np.int32))
    net.case(relay.RoundingRightShiftOp, [net.arg("int32", 3, 5), amounts])
    numbers = ((np.int64(1) << net.rng.integers(0, 31, 40)) | net.rng.integers(1, 1 << 12, 40)).astype(np.int32)
    net.case(relay.FixedPointReciprocalOp, [net.argument(numbers)])
    net.case(relay.LookupOp, [net.arg("uint8", 4, 9), net.arg("int16", 256)])
    net.case(relay.LookupOp, [net.arg("int8", 4, 9), net.arg("float32", 256)])
    net.case(relay.LookupOp, [net.arg("int16", 4, 9), net.constant(net.numbers("int16", 1 << 16))])


def movement(net: Cases) -> None:
    for dtype in ("int8", "float32", "int64", "bool"):
        shape = [net.between(1, 4) for _ in range(4)]
        x = net.arg(dtype, *shape)
        order = [int(i) for i in net.rng.permutation(4)]
        net.case(relay.TransposeOp, [x], {"axes": ints(order)})
        net.case(relay.ReshapeOp, [x], {"newshape": ints([-1])})
        net.case(relay.BroadcastToOp, [net.arg(dtype, 3, 1, 2)], {"shape": ints([2, 3, 4, 2])})
        widths = [net.between(0, 2) for _ in range(8)]
        pad: Properties = {"pad_width": ints(widths), "pad_value": scalar_attr(1, element_type(dtype))}
        net.case(relay.PadOp, [x], pad)
        net.case(relay.ConcatenateOp, [net.arg(dtype, 2, n, 3) for n in (1, 3, 2)], {"axis": axis(1)})
        slices: Properties = {"begin": ints([5, 0, 1]), "end": ints([-1, 4, 7]), "strides": ints([-2, 1, 3])}
        net.case(relay.StridedSliceOp, [net.arg(dtype, 6, 4, 7)], slices)
        indices = net.argument(net.rng.integers(-2, 7, (2, 3)).astype(np.int32))
        for mode in ("clip", "wrap"):
            properties = {"axis": axis(net.between(0, 2)), "mode": StringAttr(mode)}
            net.case(relay.TakeOp, [net.arg(dtype, 2, 5, 3), indices], properties)
        net.case(relay.TakeOp, [net.arg(dtype, 2, 3), indices], {})
        points = net.argument(net.rng.integers(-2, 7, (4, 2)).astype(np.int64))
        net.case(relay.GatherNdOp, [net.arg(dtype, 3, 5, 2), points])


def reductions(net: Cases) -> None:
    for op in (relay.SumOp, relay.MaxOp, relay.MinOp):
        for dtype in ("int8", "uint8", "int32", "int64", "float32"):
            axes = [int(a) for a in net.rng.choice(4, net.between(1, 4), replace=False)]
            properties: Properties = {"axis": ints(axes), "keepdims": BoolAttr.from_bool(bool(net.between(0, 1)))}
            net.case(op, [net.arg(dtype, 2, 3, 4, 5)], properties, dtype)
    for op in (relay.ArgmaxOp, relay.ArgminOp):
        for dtype in ("int8", "float32"):
            properties = {"axis": ints([net.between(0, 2)]), "dtype": [i32, i64][net.between(0, 1)]}
            net.case(op, [net.arg(dtype, 3, 4, 5)], properties, dtype)
    for op in (relay.MaxPool2dOp, relay.AvgPool2dOp):
        for dtype in ("int8", "uint8", "int16", "int32", "float32"):
            properties = {
                "pool_size": ints([net.between(2, 3), net.between(2, 3)]),
                "strides": ints([net.between(1, 3), net.between(1, 3)]),
                "padding": ints([net.between(0, 1) for _ in range(4)]),
            }
            net.case(op, [net.arg(dtype, 2, 7, 6, 5)], properties, dtype)
    for dtype in CODES:
        for rounding in RESCALES:
            axes = [int(a) for a in net.rng.choice(4, net.between(1, 3), replace=False)]
            properties = {
                "axis": ints(axes), "keepdims": BoolAttr.from_bool(bool(net.between(0, 1))),
                "input_scale": real(0.5), "input_zero_point": integer(net.zero_point(dtype)),
                "output_scale": real(0.5), "output_zero_point": integer(net.zero_point(dtype)),
                "rounding": StringAttr(rounding), **net.rescaling(low=-8, high=-3),
            }  # fmt: skip
            net.case(qnn.MeanOp, [net.arg(dtype, 2, 3, 4, 5)], properties, f"{dtype} {rounding}")


def activations(net: Cases) -> None:
    for dtype in ("float32", "float64"):
        net.case(relay.SoftmaxOp, [net.arg(dtype, 3, 11)], {"beta": scalar_attr(1.5, element_type(dtype))})
    for dtype in ("int8", "uint8"):
        for depth in (1, 12, 700):
            properties: Properties = {"beta": real(1), "input_scale": real(0.1), **net.rescaling(low=20, high=26)}
            net.case(qnn.SoftmaxOp, [net.arg(dtype, 2, depth)], properties)
        equal = net.argument(np.full((1, 600), 7, dtype))
        net.case(qnn.SoftmaxOp, [equal], {"beta": real(1), "input_scale": real(0.1), **net.rescaling(low=24, high=24)})
        for op in (qnn.SigmoidOp, qnn.TanhOp):
            properties = {
                "input_scale": real(net.scale() / 10), "input_zero_point": integer(net.zero_point(dtype)),
                "output_scale": real(1 / 256), "output_zero_point": integer(net.zero_point(dtype)),
            }  # fmt: skip
            net.case(op, [net.arg(dtype, 5, 9)], properties)
    for dtype in ("int8", "uint8", "int16", "int32", "float32"):
        for method in ("linear", "nearest_neighbor") if dtype != "int32" else ("nearest_neighbor",):
            corners = net.between(0, 1)
            properties = {
                "size": ints([net.between(1, 9), net.between(1, 9)]), "method": StringAttr(method),
                "align_corners": BoolAttr.from_bool(bool(corners)),
                "half_pixel_centers": BoolAttr.from_bool(not corners and bool(net.between(0, 1))),
            }  # fmt: skip
            net.case(relay.Resize2dOp, [net.arg(dtype, 2, 4, 5, 3)], properties, dtype)


def quantisation(net: Cases) -> None:
    channels = 5
    for dtype in (*CODES, "int32"):
        for per_axis in (False, True):
            scale = net.rng.uniform(0.01, 0.1, channels).astype(np.float32)
            zero_points = np.array([net.near_middle(dtype, 5) for _ in range(channels)], np.int32)
            properties: Properties = {
                "scale": elements(scale) if per_axis else real(float(scale[0])),
                "zero_point": elements(zero_points) if per_axis else integer(int(zero_points[0])),
                "axis": axis(1),
            }
            net.case(qnn.DequantizeOp, [net.arg(dtype, 4, channels, 3)], properties, dtype)
            if dtype != "int32":
                wide = net.argument(net.rng.uniform(-20, 20, (4, channels, 3)).astype(np.float32))
                net.case(qnn.QuantizeOp, [wide], {**properties, "out_dtype": element_type(dtype)}, dtype)
    net.case(qnn.DynamicQuantizeOp, [net.arg("float32", 3, 4, 5)])
    net.case(qnn.DynamicQuantizeOp, [net.argument(np.zeros((2, 4), np.float32))])
    for op in (qnn.AddOp, qnn.SubtractOp, qnn.MulOp):
        for dtype in CODES:
            for rounding in RESCALES:
                properties = {
                    **{f"{side}_scale": real(1) for side in ("lhs", "rhs", "output")},
                    **{f"{side}_zero_point": integer(net.zero_point(dtype)) for side in ("lhs", "rhs", "output")},
                    "rounding": StringAttr(rounding), "min": integer(-100), "max": integer(90),
                }  # fmt: skip
                if op is qnn.MulOp:
                    properties |= net.rescaling(low=-16 if dtype == "int16" else -8, high=-6)
                else:
                    properties |= {
                        "left_shift": integer(15 if dtype == "int16" else 20),
                        **net.rescaling(None, -20, -16),
                    }
                    for side in ("lhs", "rhs"):
                        found = net.rescaling(low=-3, high=0)
                        properties |= {f"{side}_{name}": attr for name, attr in found.items()}
                shape = [(3, 4), (1, 4), (4,)][net.between(0, 2)]
                net.case(op, [net.arg(dtype, 3, 4), net.arg(dtype, *shape)], properties, f"{dtype} {rounding}")
    for dtype in ("int8", "uint8"):
        properties = {
            "axis": axis(2), "output_scale": real(0.5), "output_zero_point": integer(net.zero_point(dtype)),
            "input_scales": elements(np.array([0.5, net.scale(), net.scale()], np.float32)),
            "input_zero_points": elements(np.array([net.zero_point(dtype) for _ in range(3)], np.int32)),
        }  # fmt: skip
        net.case(qnn.ConcatenateOp, [net.arg(dtype, 2, 3, n) for n in (2, 1, 4)], properties, dtype)


def requantised(net: Cases) -> None:
    for source in ("int8", "uint8", "int16", "int32", "int64"):
        for target in net.rng.choice((*CODES, "int32"), 2, replace=False):
            for rounding in net.rng.choice((*RESCALES, *REALS), 3, replace=False):
                if (rounding, target) == ("f32_even", "int32") or (source == "int64" and rounding not in LONG):
                    continue
                limit = 1 << {"int32": 18, "int64": 40}.get(source, 7)
                dtype = np.dtype(source)
                low = 0 if dtype.kind == "u" else -limit
                data = net.argument(net.rng.integers(low, limit, (2, 3, 4)).astype(dtype))
                along = (None, 1, 2)[net.between(0, 2)]
                properties = net.requantisation(target, rounding, None if along is None else 2 + along)
                if along is not None:
                    properties["axis"] = axis(along)
                properties["input_zero_point"] = integer(net.near_middle(source, 9))
                net.case(qnn.RequantizeOp, [data], properties, f"{source}->{target} {rounding} {along}")


KERNELS = {
    "int8": ("int8", "uint8"),
    "uint8": ("uint8", "int8"),
    "int16": ("int8", "int16"),
    "float32": ("float32",),
    "float64": ("float64",),
}
"""Types of the kernels for each type of the data."""


def contractions(net: Cases) -> None:
    for dtype, kernels in KERNELS.items():
        for kernel in kernels:
            for sums in ("int32", "int64") if dtype == "int16" else (dtype if dtype[0] == "f" else "int32",):
                for kind in ("plain", "grouped", "depthwise", "multiplied", "dense"):
                    contraction(net, dtype, kernel, sums, kind)


def contraction(net: Cases, dtype: str, kernel: str, sums: str, kind: str) -> None:
    """One product, its sums bare, biased and finished by what may follow: each is a result."""
    note = f"{dtype} {kernel} {sums} {kind}"
    properties: Properties = {"out_dtype": element_type(sums)}
    if dtype[0] != "f":
        asymmetric = net.between(0, 1)
        properties |= {"input_scale": real(1), "kernel_scale": real(1)}
        properties["input_zero_point"] = integer(net.zero_point(dtype) if dtype != "int16" else 3 * asymmetric)
        properties["kernel_zero_point"] = integer(net.zero_point(kernel) * asymmetric)
    if kind == "dense":
        data, weights, op = net.arg(dtype, 2, 3, 37), net.weights(kernel, 6, 37), "dense"
    else:
        channels, groups = {"plain": (3, 1), "grouped": (6, 3)}.get(kind, (5, 5))
        depth, multiplier = channels // groups, 2 if kind == "multiplied" else 1
        shape = (3, 2, channels, multiplier) if groups == 5 else (6, 3, 2, depth)
        data, weights, op = net.arg(dtype, 2, 6, 7, channels), net.weights(kernel, *shape), "conv2d"
        properties |= {
            "groups": axis(groups), "kernel_layout": StringAttr("HWOI" if groups == 5 else "OHWI"),
            "strides": ints([net.between(1, 2), net.between(1, 2)]),
            "dilation": ints([net.between(1, 2), net.between(1, 2)]),
            "padding": ints([net.between(0, 2) for _ in range(4)]),
        }  # fmt: skip
    plain, quantised = (relay.DenseOp, qnn.DenseOp) if op == "dense" else (relay.Conv2dOp, qnn.Conv2dOp)
    roundings = LONG if sums == "int64" else (*RESCALES, *REALS)
    kinds = (None, "bias", "clip", "maximum") if dtype[0] == "f" else (None, "bias", *roundings)
    finish = kinds[net.between(0, len(kinds) - 1)]
    value = net.add(plain if dtype[0] == "f" else quantised, [data, weights], properties)
    channels = shape_of(value)[-1]
    if finish is not None:
        value = net.add(relay.BiasAddOp, [value, net.constant(net.biases(sums, channels))], {})
    if finish == "clip":
        type = element_type(dtype)
        bounds = {"a_min": scalar_attr(0.0, type), "a_max": scalar_attr(6.0, type)}
        value = net.add(relay.ClipOp, [value], bounds)
    elif finish == "maximum":
        value = net.add(relay.MaximumOp, [value, net.constant(np.zeros((), dtype))], {})
    elif finish not in (None, "bias"):
        target = CODES[net.between(0, 2)]
        size = (None, channels)[net.between(0, 1)]
        low = -30 if sums == "int64" else -14
        value = net.add(qnn.RequantizeOp, [value], net.requantisation(target, str(finish), size, low))
    net.result(f"{note} {finish} {len(net.results)}", value)


def recurrent(net: Cases) -> None:
    for cifg in (False, True):
        gates, units, inputs, steps, batches = 3 if cifg else 4, 5, 7, 4, 2
        major = bool(net.between(0, 1))

        def per_gate(name: str, gates: int = gates) -> Properties:
            found = net.rescaling(gates, -9, -5)
            return {f"{name}_{key}": attr for key, attr in found.items()}

        properties: Properties = {
            "input_zero_point": integer(net.zero_point("int8")), "hidden_zero_point": integer(net.zero_point("int8")),
            **per_gate("input"), **per_gate("recurrent"),
            "hidden_multiplier": integer(1 << 30), "hidden_shift": integer(-21),
            "cell_shift": integer(net.between(-15, -9)), "cell_clip": integer(net.pick(0, 9000)),
            "cifg": BoolAttr.from_bool(cifg), "time_major": BoolAttr.from_bool(major),
        }  # fmt: skip
        data = net.arg("int8", *((steps, batches) if major else (batches, steps)), inputs)
        kernels = [net.weights("int8", gates * units, inputs), net.weights("int8", gates * units, units)]
        bias = net.constant(net.biases("int32", gates * units))
        states = [net.arg("int8", batches, units), net.arg("int16", batches, units)]
        net.case(qnn.LstmOp, [data, *kernels, bias, *states], properties)
    for state, biased in (("int16", True), ("int8", False)):
        filters, memory, rank, inputs, batches = 6, 4, 2, 7, 2
        properties = {
            "input_zero_point": integer(net.zero_point("int8")), "rank": axis(rank),
            "feature_multiplier": integer(1 << 30), "feature_shift": integer(-4),
            **net.rescaling(low=-12, high=-6), "output_zero_point": integer(net.between(-9, 9)),
            "min": integer(-100), "max": integer(100),
        }  # fmt: skip
        operands = [net.arg("int8", batches, inputs), net.weights("int8", filters, inputs)]
        operands.append(net.weights(state, filters, memory))
        operands += [net.constant(net.biases("int32", filters // rank))] * biased
        net.case(qnn.SvdfOp, [*operands, net.arg(state, batches, filters * memory)], properties, state)


CASES: Mapping[str, Callable[[Cases], None]] = {
    function.__name__: function
    for function in (
        elementwise,
        fixed_point,
        movement,
        reductions,
        activations,
        quantisation,
        requantised,
        contractions,
        recurrent,
    )
}
