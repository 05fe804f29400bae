"""Networks of repeated layers of codes whose values numpy computes while they are drawn, by definitions of its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f32, i8, i32, i64
from xdsl.ir import SSAValue

from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, ints
from relay.dialects.op import TensorOp
from tests.fuzz.random_layers import FACTORS, POINTS
from tests.numeric.compiled_modules import Net
from tests.numeric.random_graphs import Properties

Value = tuple[SSAValue, Array]
BINARY: tuple[tuple[type[TensorOp], Callable[[Array, Array], Array]], ...] = (
    (relay.AddOp, np.add),
    (relay.SubtractOp, np.subtract),
    (relay.MultiplyOp, np.multiply),
    (relay.MaximumOp, np.maximum),
    (relay.MinimumOp, np.minimum),
)


class ComputedLayers(Net):
    """`@main` of matrices of int8 codes: three to twelve layers, and what numpy computes for its results (`wanted`).

    A layer makes floats of codes, by dequantization or by a matrix product; then come elementwise ops with constants,
    which are scalars or have a number for each column, and with the floats themselves; then the result is quantized.
    All layers of a network have the same ops, and draw their numbers out of few. Between layers, values are
    concatenated and split."""

    def __init__(self, seed: int):
        super().__init__(seed)
        rng, self.seed = self.rng, seed
        self.columns = int(rng.choice([3, 16, 17, 40]))
        rows = int(rng.choice([1, 2, 5, 33]))
        self.values: list[Value] = []
        for _ in range(int(rng.integers(1, 3))):
            codes = self.numbers("int8", rows, self.columns)
            self.values.append((self.argument(codes), codes))
        self.product = bool(rng.random() < 0.4)
        self.plan = [(int(rng.integers(len(BINARY))), int(rng.integers(4))) for _ in range(int(rng.integers(1, 6)))]
        for _ in range(int(rng.integers(3, 13))):
            self.values.append(self.layer(self.any()))
            if rng.random() < 0.3:
                self.values += self.halves(self.any(), self.any())
        count = min(len(self.values), int(rng.integers(1, 5)))
        given = [self.values[-1 - n] for n in range(count)] + [self.any() for _ in range(int(rng.integers(3)))]
        self.wanted = [array for _, array in given]
        for number, (value, _) in enumerate(given):
            self.result(f"value {number}", value)

    def any(self) -> Value:
        """A value, rather a late one."""
        return self.values[-1 - min(int(self.rng.exponential(2)), len(self.values) - 1)]

    def constant_of(self, array: Array) -> Value:
        """A constant and its elements."""
        return self.constant(array), array

    def layer(self, x: Value) -> Value:
        y = start = self.sums(x) if self.product else self.dequantized(x)
        last = self.constant_of(np.array(self.rng.choice(FACTORS), np.float32))
        for kind, place in self.plan:
            match place:
                case 0:
                    last = other = self.constant_of(np.array(self.rng.choice(FACTORS), np.float32))
                case 1:
                    last = other = self.constant_of(self.rng.choice(FACTORS, self.columns).astype(np.float32))
                case 2:
                    other = last
                case _:
                    other = start
            op, of = BINARY[kind]
            y = self.add(op, [y[0], other[0]], {}), of(y[1], other[1])
        return self.quantized(y)

    def point(self) -> int:
        return int(self.rng.choice(POINTS["int8"]))

    def dequantized(self, x: Value) -> Value:
        scale, point = float(self.rng.choice([0.125, 0.25, 0.5])), self.point()
        properties: Properties = {"scale": FloatAttr(scale, f32), "zero_point": IntegerAttr(point, i32)}
        numbers = (x[1].astype(np.float32) - np.float32(point)) * np.float32(scale)
        return self.add(qnn.DequantizeOp, [x[0]], properties), numbers

    def sums(self, x: Value) -> Value:
        """The matrix product with a kernel of codes, times a power of two."""
        kernel, point = self.numbers("int8", self.columns, self.columns), self.point()
        sums = self.dense(x[0], self.constant(kernel), (point, 0))
        floats = self.add(relay.CastOp, [sums], {"dtype": f32})
        scale = np.array(self.rng.choice([2**-9, 2**-10, 2**-8]), np.float32)
        exact = (x[1].astype(np.int64) - point) @ kernel.astype(np.int64).T
        return self.add(relay.MultiplyOp, [floats, self.constant(scale)], {}), exact.astype(np.float32) * scale

    def quantized(self, x: Value) -> Value:
        """Codes of floats, halves away from zero."""
        scale, point = float(self.rng.choice([0.25, 0.5, 1.0])), self.point()
        properties: Properties = {"scale": FloatAttr(scale, f32), "zero_point": IntegerAttr(point, i32)}
        steps = x[1].astype(np.float64) / scale
        codes = np.clip(np.copysign(np.floor(np.abs(steps) + 0.5), steps) + point, -128, 127).astype(np.int8)
        return self.add(qnn.QuantizeOp, [x[0]], properties | {"out_dtype": i8}), codes

    def halves(self, x: Value, y: Value) -> list[Value]:
        """Two values side by side, taken apart behind the first column of the second, and the second part's reverse."""
        whole = self.add(relay.ConcatenateOp, [x[0], y[0]], {"axis": IntegerAttr(1, i64)})
        split = relay.SplitOp.make(
            [whole], {"indices_or_sections": ints([1, 1 + self.columns]), "axis": IntegerAttr(1, i64)}
        )
        self.block.add_op(split)
        both = np.concatenate([x[1], y[1]], 1)
        middle = split.results[1], both[:, 1 : 1 + self.columns]
        return [middle, (self.add(relay.ReverseOp, [middle[0]], {"axis": ints([1])}), middle[1][:, ::-1])]
