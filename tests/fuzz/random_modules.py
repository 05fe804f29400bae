"""Random modules of more kinds of ops than random graphs have: codes of 8 and 16 bits, floats between codes, parts of
images, reductions, shared weights, results that are used again."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import BoolAttr, FloatAttr, IntegerAttr, StringAttr, f32, i32, i64
from xdsl.ir import SSAValue

from relay.dialects import qnn, relay
from relay.dialects.attributes import element_type, ints
from relay.dialects.op import shape
from relay.interpreters.arithmetic import quantize_multiplier
from tests.numeric.random_graphs import Properties, RandomGraph, Step

TYPES = ("float32", "int8", "int8", "uint8", "int16")


def integer(number: int) -> IntegerAttr:
    return IntegerAttr(number, i64)


def factor(ratio: float, prefix: str = "") -> Properties:
    """A multiplier and a shift for a ratio of scales."""
    multiplier, shift = quantize_multiplier(ratio)
    return {f"{prefix}multiplier": IntegerAttr(multiplier, i32), f"{prefix}shift": IntegerAttr(shift, i32)}


class RandomModule(RandomGraph):
    """As a random graph, of a random type, with the steps here; some images are results though they are used, and some
    results are there twice."""

    def __init__(self, seed: int, size: int):
        dtype = TYPES[seed % len(TYPES)]
        self.kernels: list[SSAValue] = []
        super().__init__(seed, floats=dtype == "float32", size=size, codes=dtype)
        for number, image in enumerate(self.images):
            if self.chance(0.15):
                self.result(f"once more {number}", image)

    def steps(self) -> list[Step]:
        more = [self.parts, self.rearranged, self.chosen, self.resized, self.sums, self.features, self.same_kernel,
                self.reshaped, self.compared]  # fmt: skip
        of_codes = [self.curve, self.curve, self.quantised_binary, self.other_scale, self.through_floats]
        return [*super().steps(), *more, *(more if self.floats else of_codes)]

    def pick(self, *items: str) -> str:
        return items[int(self.rng.integers(len(items)))]

    # Of any type

    def parts(self, x: SSAValue) -> SSAValue | None:
        """Split, and put together in another order; one part may be a result."""
        axis = int(self.rng.choice([1, 2, 3]))
        size = shape(x)[axis]
        if size < 2:
            return None
        at = sorted({int(n) for n in self.rng.integers(1, size, 2)})
        op = relay.SplitOp.make([x], {"indices_or_sections": ints(at), "axis": integer(axis)})
        self.block.add_op(op)
        if self.chance(0.3):
            self.result(f"part {len(self.results)}", op.results[0])
        parts = [op.results[int(n)] for n in self.rng.permutation(len(op.results))]
        return self.add(relay.ConcatenateOp, parts, {"axis": integer(axis)})

    def rearranged(self, x: SSAValue) -> SSAValue | None:
        """Moved pixels."""
        n, height, width, channels = shape(x)
        match int(self.rng.integers(6)):
            case 0:
                return self.add(relay.ReverseOp, [x], {"axis": ints([int(self.rng.integers(4))])})
            case 1 if n * height * width * channels < 4000:
                return self.add(relay.TileOp, [x], {"reps": ints([1, 1, 2, 1])})
            case 2 if n * height * width * channels < 4000:
                return self.add(relay.RepeatOp, [x], {"repeats": integer(2), "axis": integer(1)})
            case 3 if channels % 4 == 0:
                return self.add(relay.DepthToSpaceOp, [x], {"block_size": integer(2)})
            case 4 if height % 2 == width % 2 == 0:
                return self.add(relay.SpaceToDepthOp, [x], {"block_size": integer(2)})
            case _ if min(height, width) > 1:
                properties: Properties = {"pad_width": ints([0, 0, 1, 0, 0, 1, 0, 0])}
                properties["mode"] = StringAttr(self.pick("SYMMETRIC", "REFLECT"))
                return self.add(relay.MirrorPadOp, [x], properties)
            case _:
                return None

    def chosen(self, x: SSAValue) -> SSAValue:
        """Some of the indices of an axis."""
        axis = int(self.rng.choice([1, 2, 3]))
        size = shape(x)[axis]
        indices = self.constant(self.rng.integers(0, size, max(1, size - 1)).astype(np.int32))
        return self.add(relay.TakeOp, [x, indices], {"axis": integer(axis)})

    def resized(self, x: SSAValue) -> SSAValue:
        method = self.pick("linear", "nearest_neighbor")
        size = ints(self.rng.integers(2, 9, 2).tolist())
        return self.add(relay.Resize2dOp, [x], {"size": size, "method": StringAttr(method)})

    def sums(self, x: SSAValue) -> SSAValue | None:
        """A reduction as a result, or added to the image again."""
        axes = sorted(int(n) for n in self.rng.choice(4, int(self.rng.integers(1, 4)), replace=False))
        kind = [relay.MaxOp, relay.MinOp, relay.ArgmaxOp, relay.SumOp][int(self.rng.integers(4))]
        if kind is relay.ArgmaxOp:
            axes = axes[:1]
        wide = x
        if kind is relay.SumOp and not self.floats:
            wide = self.add(relay.CastOp, [x], {"dtype": i32})
        keep = bool(self.rng.integers(2))
        reduced = self.add(kind, [wide], {"axis": ints(axes), "keepdims": BoolAttr.from_bool(keep)})
        if keep and reduced.type != wide.type and kind in (relay.MaxOp, relay.MinOp) and self.chance(0.5):
            return self.add(relay.MinimumOp, [x, reduced], {})
        self.result(f"reduced {len(self.results)}", reduced)
        return None

    def features(self, x: SSAValue) -> None:
        """A matrix product of what an image is laid out flat."""
        n, *rest = shape(x)
        depth = math.prod(rest)
        if depth > 3000:
            return
        flat = self.add(relay.ReshapeOp, [x], {"newshape": ints([n, depth])})
        kernel = self.shared([10, depth])
        properties: Properties = {"out_dtype": f32}
        if not self.floats:
            properties = {"input_scale": FloatAttr(1.0, f32), "kernel_scale": FloatAttr(1.0, f32)}
            properties["input_zero_point"] = self.zero_point(-128, 128)
            if self.dtype == "int16":
                properties["out_dtype"] = i64
        product = self.add(relay.DenseOp if self.floats else qnn.DenseOp, [flat, kernel], properties)
        if self.floats:
            product = self.add(relay.LogSoftmaxOp, [product], {}) if self.chance(0.5) else product
        elif self.chance(0.8):
            product = self.rescaled(product, 10)
        self.result(f"features {len(self.results)}", product)

    def shared(self, dims: Sequence[int]) -> SSAValue:
        """Weights of this shape that are there, or new ones."""
        for kernel in self.kernels:
            if shape(kernel) == tuple(dims):
                return kernel
        self.kernels.append(self.constant(self.numbers(self.kernel_dtype, *dims)))
        return self.kernels[-1]

    def same_kernel(self, x: SSAValue) -> SSAValue:
        """A convolution with weights that others have too."""
        channels = shape(x)[3]
        side = 3 if min(shape(x)[1:3]) > 2 else 1
        properties: Properties = {"padding": ints([1, 1, 1, 1] if side == 3 else [0] * 4)}
        return self.product(x, self.shared([channels, side, side, channels]), channels, properties)

    def reshaped(self, x: SSAValue) -> SSAValue:
        """Another shape, something on each element, and back; or rows and columns as one."""
        n, height, width, channels = shape(x)
        flat = self.add(relay.ReshapeOp, [x], {"newshape": ints([n, height * width, channels])})
        if self.chance(0.5):
            flat = self.add(relay.MaximumOp, [flat, self.constant(self.numbers(self.dtype, channels))], {})
        back = [n, height, width, channels] if self.chance(0.5) else [n, 1, height * width, channels]
        return self.add(relay.ReshapeOp, [flat], {"newshape": ints(back)})

    def compared(self, x: SSAValue) -> SSAValue:
        """Of an image and another, or its own reverse, what a comparison says."""
        same = [value for value in self.images if value.type == x.type and value is not x]
        other = same[0] if same else self.add(relay.ReverseOp, [x], {"axis": ints([2])})
        kind = relay.GreaterOp if self.chance(0.5) else relay.EqualOp
        condition = self.add(kind, [x, other], {})
        if self.chance(0.2):
            self.result(f"condition {len(self.results)}", condition)
        return self.add(relay.WhereOp, [condition, x, other], {})

    # Of codes

    def scales(self, *names: str) -> Properties:
        found: Properties = {}
        for name in names:
            found[f"{name}_scale"] = FloatAttr(float(np.float32(self.rng.uniform(0.01, 0.1))), f32)
            found[f"{name}_zero_point"] = self.zero_point(-20, 20)
        return found

    def ratio(self) -> float:
        return float(self.rng.uniform(0.3, 1.5))

    def curve(self, x: SSAValue) -> SSAValue:
        """A function of codes."""
        scales = self.scales("input", "output")
        kinds = [qnn.GeluOp, qnn.ExpOp, qnn.EluOp, qnn.AbsOp, qnn.LeakyReluOp, qnn.LogOp, qnn.SqrtOp]
        kind = kinds[int(self.rng.integers(len(kinds)))]
        if kind is qnn.AbsOp and self.chance(0.5):
            return self.add(kind, [x], scales | factor(self.ratio()))
        if kind is qnn.LeakyReluOp:
            alpha = float(np.float32(self.rng.uniform(-0.5, 1)))
            scales |= factor(self.ratio()) | factor(abs(alpha), "alpha_") | {"alpha": FloatAttr(alpha, f32)}
        return self.add(kind, [x], scales)

    def quantised_binary(self, x: SSAValue) -> SSAValue:
        """With another image, a channel's numbers, or itself."""
        same = [value for value in self.images if value.type == x.type]
        y = same[int(self.rng.integers(len(same)))]
        if self.chance(0.3):
            y = self.constant(self.numbers(self.dtype, shape(x)[3]))
        scales = self.scales("lhs", "rhs", "output")
        if self.chance(0.3):
            low = 100 if self.dtype == "uint8" else -30
            scales |= {"min": IntegerAttr(low, i32), "max": IntegerAttr(low + 70, i32)}
        if self.chance(0.5):
            return self.add(qnn.MulOp, [x, y], scales | factor(self.ratio() / 64))
        left = 15 if self.dtype == "int16" else 20
        scales |= (
            factor(self.ratio() / (1 << left)) | factor(self.ratio() / 2, "lhs_") | factor(self.ratio() / 2, "rhs_")
        )
        return self.add(qnn.SubtractOp, [x, y], scales | {"left_shift": IntegerAttr(left, i32)})

    def other_scale(self, x: SSAValue) -> SSAValue:
        """Codes of another scale; an average over rows and columns of it."""
        out = {"out_dtype": element_type(self.dtype)}
        if self.chance(0.5):
            return self.add(qnn.RequantizeOp, [x], self.scales("input", "output") | factor(self.ratio()) | out)
        count = math.prod(shape(x)[1:3])
        keep = {"axis": ints([1, 2]), "keepdims": BoolAttr.from_bool(True)}
        kind, ratio = (qnn.MeanOp, self.ratio() / count) if self.chance(0.7) else (qnn.SumOp, self.ratio() / 8)
        mean = self.add(kind, [x], self.scales("input", "output") | factor(ratio) | keep)
        if self.chance(0.5):
            return mean
        return self.add(relay.MaximumOp, [x, mean], {})

    def through_floats(self, x: SSAValue) -> SSAValue:
        """Numbers, a function of them that rounds nowhere, and codes again."""
        scale, start = FloatAttr(0.0625, f32), self.zero_point(-20, 20)
        real = self.add(qnn.DequantizeOp, [x], {"scale": scale, "zero_point": start})
        match int(self.rng.integers(4)):
            case 0:
                real = self.add(relay.ReluOp, [real], {})
            case 1:
                real = self.add(relay.NegativeOp, [real], {})
            case 2:
                real = self.add(relay.MaxPool2dOp, [real], {"pool_size": ints([1, 1]), "strides": ints([1, 1])})
            case _:
                real = self.add(relay.ConcatenateOp, [real, real], {"axis": integer(3)})
        properties: Properties = {"scale": FloatAttr(0.125, f32), "zero_point": self.zero_point(-20, 20)}
        return self.add(qnn.QuantizeOp, [real], properties | {"out_dtype": element_type(self.dtype)})
