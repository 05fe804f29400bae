"""Random graphs over images, of floats or of codes of a type, with what optimisations look for: chains, branches,
twins."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import BoolAttr, FloatAttr, IntegerAttr, StringAttr, f32, i32, i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects import qnn, relay
from relay.dialects.attributes import element_type, elements, ints, scalar_attr
from relay.dialects.op import shape
from tests.numeric.compiled_modules import Net

Properties = dict[str, Attribute]
Step = Callable[[SSAValue], SSAValue | None]


class RandomGraph(Net):
    """`@main` of one random image, or two, and up to `size` steps; every image nobody reads is a result."""

    def __init__(self, seed: int, *, floats: bool, size: int = 8, codes: str = "int8"):
        super().__init__(seed)
        self.floats = floats
        self.codes = codes
        channels = int(self.rng.choice([1, 3, 4, 8, 12]))
        dims = (int(self.rng.integers(1, 3)), int(self.rng.integers(4, 9)), int(self.rng.integers(4, 9)), channels)
        self.images = [self.argument(self.numbers(self.dtype, *dims))]
        if self.rng.random() < 0.3:
            self.images.append(self.argument(self.numbers(self.dtype, *dims)))
        steps = self.steps()
        for _ in range(size):
            made = steps[int(self.rng.integers(len(steps)))](self.any())
            if made is not None:
                self.images.append(made)
        for number, value in enumerate(self.images):
            if not value.has_one_use() and not any(value.uses):
                self.result(f"image {number}", value)
        if not self.results:
            self.result("last", self.images[-1])

    def steps(self) -> list[Step]:
        """What may follow an image: another image, or nothing."""
        return [self.conv, self.conv, self.depthwise, self.pool, self.residual, self.concatenate, self.pad,
                self.slice, self.function, self.transposes, self.squeeze, self.scale, self.twins]  # fmt: skip

    @property
    def dtype(self) -> str:
        return "float32" if self.floats else self.codes

    @property
    def kernel_dtype(self) -> str:
        return "int8" if self.dtype == "int16" else self.dtype

    def zero_point(self, low: int, high: int) -> IntegerAttr:
        """One that the codes may have; the bounds are those of int8."""
        number = int(self.rng.integers(low, high))
        return IntegerAttr({"int16": 0, "uint8": number + 128}.get(self.codes, number), i32)

    def any(self) -> SSAValue:
        """An image, rather a late one."""
        return self.images[int(self.rng.integers(max(0, len(self.images) - 3), len(self.images)))]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    # Steps

    def window(self, x: SSAValue) -> tuple[int, Properties]:
        """A square window that fits, its strides and padding."""
        side = int(self.rng.integers(1, 4))
        pad = int(self.rng.integers(0, side)) if side > 1 else 0
        if min(shape(x)[1:3]) + pad < side:
            side, pad = 1, 0
        return side, {"strides": ints(self.rng.integers(1, 3, 2).tolist()), "padding": ints([0, pad, pad, 0])}

    def conv(self, x: SSAValue) -> SSAValue:
        channels = shape(x)[3]
        groups = 2 if channels % 2 == 0 and self.chance(0.2) else 1
        out, (side, properties) = int(self.rng.choice([2, 4, 8, 10])), self.window(x)
        kernel = self.constant(self.numbers(self.kernel_dtype, out, side, side, channels // groups))
        return self.product(x, kernel, out, properties | {"groups": IntegerAttr(groups, i64)})

    def depthwise(self, x: SSAValue) -> SSAValue:
        channels, multiplier = shape(x)[3], int(self.rng.integers(1, 3))
        side, properties = self.window(x)
        kernel = self.constant(self.numbers(self.kernel_dtype, side, side, channels, multiplier))
        properties |= {"groups": IntegerAttr(channels, i64), "kernel_layout": StringAttr("HWOI")}
        return self.product(x, kernel, channels * multiplier, properties)

    def product(self, x: SSAValue, kernel: SSAValue, out: int, properties: Properties) -> SSAValue:
        """A convolution with what follows it."""
        if self.floats:
            y = self.add(relay.Conv2dOp, [x, kernel], properties | {"out_dtype": f32})
            return self.relu(y, out) if self.chance(0.7) else y
        scales: Properties = {"input_scale": FloatAttr(1.0, f32), "kernel_scale": FloatAttr(1.0, f32)}
        scales["input_zero_point"] = self.zero_point(-128, 128)
        if self.dtype == "uint8":
            scales["kernel_zero_point"] = IntegerAttr(int(self.rng.integers(256)), i32)
        if self.dtype == "int16":
            scales["out_dtype"] = i64
        sums = self.add(qnn.Conv2dOp, [x, kernel], properties | scales)
        if self.chance(0.8):
            wide = np.int64 if self.dtype == "int16" else np.int32
            bias = self.constant(self.rng.integers(-2000, 2000, out).astype(wide))
            sums = self.add(relay.BiasAddOp, [sums, bias], {})
        return self.rescaled(sums, out)

    def rescaled(self, sums: SSAValue, out: int) -> SSAValue:
        dims = (out,) if self.chance(0.7) else ()
        return self.add(
            qnn.RequantizeOp,
            [sums],
            {
                "input_scale": elements(self.rng.uniform(0.1, 1, dims).astype(np.float32)) if dims
                else FloatAttr(0.5, f32),
                "output_scale": FloatAttr(1.0, f32),
                "output_zero_point": self.zero_point(-20, 20),
                "multiplier": elements(self.rng.integers(1 << 30, 1 << 31, out).astype(np.int32)) if dims
                else IntegerAttr(1234567890, i32),
                "shift": elements(self.rng.integers(-9, -5, out).astype(np.int32)) if dims else IntegerAttr(-7, i32),
                "out_dtype": element_type(self.dtype),
            },
        )  # fmt: skip

    def pool(self, x: SSAValue) -> SSAValue:
        side, properties = self.window(x)
        kind = relay.MaxPool2dOp if self.chance(0.5) else relay.AvgPool2dOp
        return self.add(kind, [x], properties | {"pool_size": ints([side, side])})

    def residual(self, x: SSAValue) -> SSAValue | None:
        """The sum with another image of the same shape."""
        same = [value for value in self.images if value.type == x.type]
        y = same[int(self.rng.integers(len(same)))]
        return self.sum(x, y)

    def sum(self, x: SSAValue, y: SSAValue) -> SSAValue:
        if self.floats:
            return self.add(relay.AddOp, [x, y], {})
        names = ("lhs", "rhs", "output")
        scales: Properties = {f"{name}_scale": FloatAttr(1.0, f32) for name in names}
        scales |= {f"{name}_zero_point": self.zero_point(-9, 9) for name in names}
        left = 15 if self.dtype == "int16" else 20
        factors: Properties = {f"{side}multiplier": IntegerAttr(1 << 30, i32) for side in ("", "lhs_", "rhs_")}
        shifts = ("", 1 - left), ("lhs_", 0), ("rhs_", -1)
        factors |= {f"{side}shift": IntegerAttr(shift, i32) for side, shift in shifts}
        return self.add(qnn.AddOp, [x, y], scales | factors | {"left_shift": IntegerAttr(left, i32)})

    def concatenate(self, x: SSAValue) -> SSAValue:
        axis = int(self.rng.choice([-1, 1, 3]))
        same = [v for v in self.images if all(a == b for i, (a, b) in enumerate(zip(shape(v), shape(x), strict=True))
                                              if i != axis % 4)]  # fmt: skip
        other = same[int(self.rng.integers(len(same)))]
        return self.add(relay.ConcatenateOp, [x, other], {"axis": IntegerAttr(axis, i64)})

    def pad(self, x: SSAValue) -> SSAValue:
        top, left = (int(n) for n in self.rng.integers(0, 3, 2))
        last = int(self.rng.integers(1, 3)) if self.chance(0.2) else 0
        number = abs if self.dtype == "uint8" else int
        value = scalar_attr(number(int(self.rng.integers(-3, 3))) if not self.floats else 0.0, element_type(self.dtype))
        return self.add(relay.PadOp, [x], {"pad_width": ints([0, 0, top, 1, 0, left, 0, last]), "pad_value": value})

    def slice(self, x: SSAValue) -> SSAValue:
        end = list(shape(x))
        begin = [0, int(self.rng.integers(0, end[1])), 0, int(self.rng.integers(0, end[3])) if self.chance(0.3) else 0]
        bounds: Properties = {"begin": ints(begin), "end": ints(end), "strides": ints([1, 1, 1, 1])}
        return self.add(relay.StridedSliceOp, [x], bounds)

    def function(self, x: SSAValue) -> SSAValue:
        """Something on each element."""
        if not self.floats:
            if self.chance(0.5):
                table = self.constant(self.numbers(self.dtype, 1 << 8 * np.dtype(self.dtype).itemsize))
                return self.add(relay.LookupOp, [x, table], {})
            start, lowest, step = {"int8": (3, -128, 1 / 256), "uint8": (131, 0, 1 / 256)}.get(
                self.codes, (0, 0, 2**-15)
            )
            parameters: Properties = {
                "input_scale": FloatAttr(0.05 if start else 0.001, f32), "output_scale": FloatAttr(step, f32),
                "input_zero_point": IntegerAttr(start, i32), "output_zero_point": IntegerAttr(lowest, i32),
            }  # fmt: skip
            return self.add(qnn.SigmoidOp, [x], parameters)
        kind = [relay.SigmoidOp, relay.TanhOp, relay.NegativeOp, relay.AbsOp][int(self.rng.integers(4))]
        return self.add(kind, [x], {})

    def transposes(self, x: SSAValue) -> SSAValue:
        """There, a step, and back."""
        y = self.add(relay.TransposeOp, [x], {"axes": ints([0, 3, 1, 2])})
        if self.floats:
            y = self.add(relay.AbsOp, [y], {})
        else:
            low, high = (scalar_attr(n, element_type(self.dtype)) for n in (0 if self.dtype == "uint8" else -100, 90))
            y = self.add(relay.ClipOp, [y], {"a_min": low, "a_max": high})
        return self.add(relay.TransposeOp, [y], {"axes": ints([0, 2, 3, 1])})

    def squeeze(self, x: SSAValue) -> SSAValue | None:
        """Images weighted by a number per channel that is found from them; a sum per channel is a result."""
        keep: Properties = {"axis": ints([1, 2]), "keepdims": BoolAttr.from_bool(True)}
        if self.floats:
            weight = self.add(relay.SigmoidOp, [self.add(relay.MaxOp, [x], keep)], {})
            return self.add(relay.MultiplyOp, [x, weight], {})
        weight = self.add(relay.MaxOp, [x], keep)
        wide = self.add(relay.CastOp, [x], {"dtype": i32})
        total = self.add(relay.SumOp, [wide], {"axis": ints([1, 2])})
        self.result(f"sum {len(self.results)}", total)
        return self.add(relay.MaximumOp, [x, weight], {})

    def scale(self, x: SSAValue) -> SSAValue:
        """A factor per channel, of powers of two so that it can be moved exactly; codes only get a bound each."""
        channels = shape(x)[3]
        if self.floats:
            factors = np.float32(2) ** self.rng.integers(-2, 3, channels).astype(np.float32)
            return self.add(relay.MultiplyOp, [x, self.constant(factors.astype(np.float32))], {})
        return self.add(relay.MaximumOp, [x, self.constant(self.numbers(self.dtype, channels))], {})

    def twins(self, x: SSAValue) -> SSAValue:
        """Two convolutions of one image side by side."""
        channels = shape(x)[3]
        sides: list[SSAValue] = []
        side, properties = self.window(x)
        for out in (4, 8):
            kernel = self.constant(self.numbers(self.kernel_dtype, out, side, side, channels))
            sides.append(self.product(x, kernel, out, dict(properties)))
        return self.add(relay.ConcatenateOp, sides, {"axis": IntegerAttr(-1, i64)})
