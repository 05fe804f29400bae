"""Random networks whose layers repeat: the same steps, drawn once for a type of image, with equal or other numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects import tensor as tensor_dialect
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f32, i1, i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, dtype_of, element_type, elements, ints, scalar_attr, to_numpy
from relay.dialects.op import shape, tensor
from tests.fuzz.random_modules import RandomModule
from tests.numeric.random_graphs import Properties, Step

FACTORS = (0.5, 2.0, -1.5, 0.25, -2.0, 0.75, 3.0, -0.5, 1.0, 0.0)
"""Constants of chains of floats: sums and products of them and of codes times a power of two are exact in float32."""
SCALES = (0.0625, 0.125, 0.25, 0.05)
POINTS = {"int8": (-128, -5, 0, 3, 127), "uint8": (0, 3, 128, 131, 255), "int16": (0,)}
"""Zero points by the dtype of codes."""
MULTIPLIERS = (1 << 30, 1234567890, (1 << 31) - 1)
REARRANGED: Sequence[Callable[[Array], Array]] = (
    lambda array: array,
    lambda array: array[::-1],
    lambda array: np.roll(array, 1, 0),
    lambda array: np.broadcast_to(array.reshape(-1)[:1].reshape([1] * array.ndim), array.shape),
)
"""Constants that are valid wherever an array of rank 1 or more is."""
BINARY = (relay.AddOp, relay.MultiplyOp, relay.SubtractOp, relay.MaximumOp, relay.MinimumOp)


class RandomLayers(RandomModule):
    """A random module whose steps are layers. A layer is one to three steps of a random module that are drawn anew only
    for a type of image that no layer took before. `renumber` then gives the layer's ops other numbers, out of few, or
    leaves them as they are. So there are kernels that are equal, and kernels that differ in some of their numbers."""

    def __init__(self, seed: int, size: int):
        self.seed, self.layers = seed, dict[Attribute, int]()
        super().__init__(seed, size)
        if self.chance(0.2):
            self.result("input", self.images[0])

    def steps(self) -> list[Step]:
        return [self.layer]

    def any(self) -> SSAValue:
        """An image, rather one of the first image's type."""
        alike = [image for image in self.images if image.type == self.images[0].type]
        return alike[int(self.rng.integers(len(alike)))] if self.chance(0.7) else super().any()

    def layer(self, x: SSAValue) -> None:
        seed = self.layers.setdefault(x.type, int(self.rng.integers(1 << 30)))
        outer, self.rng, before, y = self.rng, np.random.default_rng(seed), self.block.last_op, x
        unstable = (self.compared, self.sums) if self.floats else ()
        steps = [each for each in super().steps() if each not in unstable]
        steps += [self.chain, self.chain, self.integers, self.mixed]
        steps += [self.branch, self.loop] * 4 if self.chance(0.3) else []
        for _ in range(int(self.rng.integers(1, 4))):
            made = steps[int(self.rng.integers(len(steps)))](y)
            if made is not None:
                self.images.append(y := made)
        self.rng, op = outer, self.block.first_op if before is None else before.next_op
        while op is not None:
            for inner in op.walk():
                if self.chance(0.7):
                    self.renumber(inner)
            op = op.next_op

    def renumber(self, op: Operation) -> None:
        """Replace some of the op's numbers by others that the op may have, with which all types stay the same."""
        for name, attribute in list(op.properties.items()):
            if self.chance(0.5) and (found := self.other(op, name, attribute)) is not None:
                op.properties[name] = found

    def other(self, op: Operation, name: str, attribute: Attribute) -> Attribute | None:
        """Another number for a property; None if the property stays as it is."""
        if isinstance(op, relay.ConstantOp):
            array = to_numpy(attribute)
            if not array.ndim:
                return elements(np.array(self.rng.choice(FACTORS), array.dtype)) if array.dtype.kind == "f" else None
            return elements(np.ascontiguousarray(REARRANGED[int(self.rng.integers(len(REARRANGED)))](array)))
        if isinstance(attribute, IntegerAttr) and name.endswith("zero_point"):
            return IntegerAttr(int(self.rng.choice(POINTS[self.dtype])), i32)
        if isinstance(attribute, IntegerAttr) and name.endswith("multiplier"):
            return IntegerAttr(int(self.rng.choice(MULTIPLIERS)), i32)
        if isinstance(attribute, FloatAttr) and name.endswith("scale"):
            return FloatAttr(float(np.float32(self.rng.choice(SCALES))), f32)
        return None

    # Steps

    def number(self, x: SSAValue) -> SSAValue:
        """A constant for all elements of an image, or one for each channel."""
        dims = [(), (1,), shape(x)[-1:]][int(self.rng.integers(3))]
        dtype = dtype_of(tensor(x).element_type)
        choices = FACTORS if dtype.kind == "f" else (-3, -1, 0, 1, 2, 5)
        return self.constant(self.rng.choice(choices, dims).astype(dtype))

    def computed(self, x: SSAValue) -> SSAValue:
        """Two to five elementwise ops of an image, and constants some of which are used twice, or the image again."""
        y, used = x, [x, self.number(x)]
        if self.chance(0.5):
            used += [self.add(relay.ReverseOp, [x], {"axis": ints([1])})]
        for _ in range(int(self.rng.integers(2, 6))):
            if self.chance(0.6):
                used.append(self.number(x))
            other = used[int(self.rng.integers(len(used)))]
            pair = [y, other] if self.chance(0.7) else [other, y]
            y = self.add(BINARY[int(self.rng.integers(len(BINARY)))], pair, {})
        return y

    def chain(self, x: SSAValue) -> SSAValue:
        """Elementwise ops of floats; codes are dequantized before, and quantized after them."""
        if self.floats:
            clip: Properties = {"a_min": FloatAttr(-8.0, f32), "a_max": FloatAttr(8.0, f32)}
            return self.add(relay.ClipOp, [self.computed(x)], clip)
        names = ("scale", "zero_point")
        given: Properties = {"scale": FloatAttr(0.125, f32), "zero_point": self.zero_point(-20, 20)}
        y = self.computed(self.add(qnn.DequantizeOp, [x], {name: given[name] for name in names}))
        given |= {"zero_point": self.zero_point(-20, 20), "out_dtype": element_type(self.dtype)}
        return self.add(qnn.QuantizeOp, [y], given)

    def integers(self, x: SSAValue) -> SSAValue | None:
        """Elementwise ops of 32-bit integers between codes."""
        if self.floats or self.dtype == "int16":
            return None
        y = self.computed(self.add(relay.CastOp, [x], {"dtype": i32}))
        type = element_type(self.dtype)
        low, high = (0, 255) if self.dtype == "uint8" else (-128, 127)
        clip: Properties = {"a_min": scalar_attr(low, i32), "a_max": scalar_attr(high, i32)}
        return self.add(relay.CastOp, [self.add(relay.ClipOp, [y], clip)], {"dtype": type})

    def mixed(self, x: SSAValue) -> SSAValue | None:
        """A matrix product that mixes the channels of each pixel, and its explicit rescaling."""
        dims, channels = shape(x), shape(x)[-1]
        if self.dtype == "int16":
            return None
        rows = self.add(relay.ReshapeOp, [x], {"newshape": ints([prod(dims[:-1]), channels])})
        kernel = self.constant(self.numbers(self.kernel_dtype, channels, channels))
        points = None if self.floats else (int(self.rng.choice(POINTS[self.dtype])), 3)
        sums = self.dense(rows, kernel, points)
        if self.floats:
            y = self.relu(sums, channels)
        else:
            y = self.requantize(sums, channels, self.dtype, per_channel=self.chance(0.5))
        return self.add(relay.ReshapeOp, [y], {"newshape": ints(dims)})

    # Control flow

    def within(self, block: Block, x: SSAValue) -> SSAValue:
        """Compute a value of the image's type in a block: the image itself, or what a step makes of it."""
        outer, self.block = self.block, block
        steps: list[Step] = [self.chain, self.integers, self.mixed]
        y = (None if self.chance(0.2) else steps[int(self.rng.integers(3))](x)) or x
        if self.chance(0.3):
            y = self.sum(y, x)
        self.block = outer
        return y

    def branch(self, x: SSAValue) -> SSAValue:
        """Two ways to compute a value, of which an input selects one."""
        given = self.argument(np.array(self.chance(0.5)))
        truth = tensor_dialect.ExtractOp(given, [], i1)
        then, otherwise = Block(), Block()
        for block in (then, otherwise):
            block.add_op(scf.YieldOp(self.within(block, x)))
        op = scf.IfOp(truth.result, [x.type], Region(then), Region(otherwise))
        self.block.add_ops([truth, op])
        return op.results[0]

    def loop(self, x: SSAValue) -> SSAValue:
        """A value that a loop computes again from itself, as often as an input says."""
        given = self.argument(np.array(self.rng.integers(4), np.int32))
        types = [given.type, x.type]
        before, after = Block(arg_types=types), Block(arg_types=types)
        outer, self.block = self.block, before
        more = self.add(relay.GreaterOp, [before.args[0], self.constant(np.array(0, np.int32))], {})
        truth = tensor_dialect.ExtractOp(more, [], i1)
        before.add_ops([truth, scf.ConditionOp(truth.result, *before.args)])
        self.block = after
        less = self.add(relay.SubtractOp, [after.args[0], self.constant(np.array(1, np.int32))], {})
        self.block = outer
        after.add_op(scf.YieldOp(less, self.within(after, after.args[1])))
        op = scf.WhileOp([given, x], types, [before], [after])
        self.block.add_op(op)
        return op.results[1]
