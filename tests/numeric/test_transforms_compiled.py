"""What changes shapes and orders, makes tensors, reads and writes by indices: compiled, against the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, StringAttr, f32, i32, i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import element_type, ints, scalar_attr
from relay.dialects.op import TensorOp
from tests.numeric.compiled_modules import Net

Properties = Mapping[str, Attribute]


def number(value: int) -> IntegerAttr:
    return IntegerAttr(value, i64)


class Cases:
    """Adds ops to a net, every result of theirs as one of it."""

    def __init__(self, seed: int, dtype: str):
        self.net, self.dtype = Net(seed), dtype

    def x(self, *shape: int) -> SSAValue:
        return self.net.argument(self.net.numbers(self.dtype, *shape))

    def below(self, high: int, *shape: int, low: int = 0) -> SSAValue:
        """Integers from `low` to `high - 1`."""
        return self.net.argument(self.net.rng.integers(low, high, shape).astype(np.int32))

    def add(self, op: type[TensorOp], *operands: SSAValue, **properties: Attribute) -> None:
        new = op.make(operands, properties)
        self.net.block.add_op(new)
        for place, result in enumerate(new.results):
            self.net.result(f"{len(self.net.results)} {op.name} {place}", result)


def shapes(c: Cases) -> None:
    x, y = c.x(2, 3, 4), c.x(2, 3, 4)
    c.add(relay.ExpandDimsOp, x, axis=number(1), num_newaxis=number(2))
    c.add(relay.ExpandDimsOp, x, axis=number(-1))
    c.add(relay.SqueezeOp, c.x(1, 3, 1), axis=ints([-1]))
    c.add(relay.SqueezeOp, c.x(1, 3, 1))
    for axis in (0, 1, -1):
        c.add(relay.StackOp, x, y, axis=number(axis))
        c.add(relay.RepeatOp, x, repeats=number(3), axis=number(axis))
    c.add(relay.SplitOp, x, indices_or_sections=number(2), axis=number(-1))
    c.add(relay.SplitOp, x, indices_or_sections=ints([1, 1]), axis=number(1))
    for reps in ([2, 1, 3], [2], [2, 1, 1, 2]):
        c.add(relay.TileOp, x, reps=ints(reps))
    for axes in ([0], [1, -1], []):
        c.add(relay.ReverseOp, x, axis=ints(axes))
    for indexing in ("ij", "xy"):
        c.add(relay.MeshgridOp, c.x(3), c.x(), c.x(4), indexing=StringAttr(indexing))


def likes(c: Cases) -> None:
    x = c.x(2, 3, 4)
    other = c.net.argument(np.zeros((6, 4), np.int16))
    c.add(relay.CastLikeOp, x, other)
    c.add(relay.ReshapeLikeOp, x, other)
    c.add(relay.BroadcastToLikeOp, c.x(6, 1), other)
    c.add(relay.CollapseSumLikeOp, c.x(5, 6, 4), other)
    c.add(relay.SliceLikeOp, c.x(7, 5), other, axes=ints([]))
    c.add(relay.SliceLikeOp, c.x(7, 5), other, axes=ints([-1]))
    c.add(relay.CollapseSumToOp, x, shape=ints([3, 1]))
    c.add(relay.CollapseSumToOp, x, shape=ints([2, 3, 4]))
    image = c.x(2, 3, 4, 8)
    for source, target in (("NHWC", "NCHW"), ("NHWC", "NCHW4c"), ("NHWC", "NHWC2c")):
        c.add(relay.LayoutTransformOp, image, src_layout=StringAttr(source), dst_layout=StringAttr(target))
    c.add(relay.LayoutTransformOp, c.x(2, 3, 4, 5, 2), src_layout=StringAttr("NCHW2c"), dst_layout=StringAttr("NHWC"))
    bits = {"float32": "int32", "int8": "uint8", "int32": "float32"}[c.dtype]
    c.add(relay.ReinterpretOp, x, dtype=element_type(bits))


def creations(c: Cases) -> None:
    element = element_type(c.dtype)
    for op in (relay.ZerosOp, relay.OnesOp):
        c.add(op, shape=ints([2, 3]), dtype=element)
    filler = c.x()
    c.add(relay.FullOp, filler, shape=ints([3, 2]))
    c.add(relay.FullLikeOp, c.x(4, 2), filler)
    c.add(relay.ArangeOp, **{n: scalar_attr(v, i32) for n, v in (("start", 7), ("stop", -3), ("step", -3))})
    c.add(relay.ArangeOp, **{n: scalar_attr(v, f32) for n, v in (("start", 0.5), ("stop", 2), ("step", 0.25))})
    indices = c.below(6, 2, 3, low=-1)
    for axis in (-1, 0, 1):
        c.add(relay.OneHotOp, indices, c.x(), c.x(), depth=number(5), axis=number(axis))
    for size in (1, 7):
        for exclusive in (False, True):
            for op in (relay.CumsumOp, relay.CumprodOp):
                c.add(op, c.x(2, size, 3), axis=number(1), exclusive=BoolAttr.from_bool(exclusive))
    for axis in (0, 1):
        lengths = c.below(7, (5, 4)[axis], low=-1)
        c.add(relay.SequenceMaskOp, c.x(4, 5, 2), lengths, mask_value=scalar_attr(3, element), axis=number(axis))
    c.add(relay.MatrixSetDiagOp, c.x(2, 3, 4), c.x(2, 3))
    c.add(relay.MatrixSetDiagOp, c.x(3, 4), c.x(2), k=ints([2]))
    for align in ("LEFT_RIGHT", "RIGHT_LEFT"):
        c.add(relay.MatrixSetDiagOp, c.x(2, 3, 4), c.x(2, 4, 3), k=ints([-2, 1]), align=StringAttr(align))


def indexing(c: Cases) -> None:
    x = c.x(3, 5, 4)
    c.add(relay.GatherOp, x, c.below(7, 3, 2, 4, low=-1), axis=number(1))
    c.add(relay.AdvIndexOp, x, c.below(3, 2, 1), c.below(5, 6))
    for mode in ("clip", "wrap", "fast"):
        c.add(relay.TakeOp, x, c.below(9, 2, 2, low=-9), axis=number(1), mode=StringAttr(mode))
        c.add(relay.TakeOp, x, c.below(99, 3, 2, low=-9), mode=StringAttr(mode))
    codes = c.net.argument(c.net.numbers("uint8", 2, 3))
    for mode in ("clip", "wrap"):
        c.add(relay.TakeOp, x, codes, axis=number(1), mode=StringAttr(mode))
    c.add(relay.ReverseSequenceOp, x, c.below(7, 3, low=-1))
    c.add(relay.ReverseSequenceOp, x, c.below(4, 4), seq_axis=number(0), batch_axis=number(-1))
    for axis, places in ((0, (6, 5, 4)), (-1, (3, 5, 1))):
        for op in (relay.ScatterOp, relay.ScatterAddOp):
            c.add(op, x, c.below(6, *places, low=-5), c.x(*places), axis=number(axis))
    for mode in ("update", "add"):
        c.add(relay.ScatterNdOp, x, c.below(3, 7, 2, low=-1), c.x(7, 4), mode=StringAttr(mode))
        c.add(relay.ScatterNdOp, x, c.below(3, 2, 2, 3), c.x(2, 2), mode=StringAttr(mode))
        c.add(relay.ScatterNdOp, x, c.below(3, 1), c.x(5, 4), mode=StringAttr(mode))
    for op in (relay.ScatterOp, relay.ScatterAddOp):
        c.add(op, x, c.below(6, 0, 5, 4), c.x(0, 5, 4), axis=number(0))
    for mode in ("update", "add"):
        c.add(relay.ScatterNdOp, x, c.below(3, 0, 2), c.x(0, 4), mode=StringAttr(mode))
        c.add(relay.ScatterNdOp, x, c.below(3, 2, 0), c.x(2, 3, 5, 4), mode=StringAttr(mode))
    c.add(relay.StridedSetOp, x, c.x(0, 5, 4), begin=ints([2, 0, 0]), end=ints([2, 5, 4]), strides=ints([1, 1, 1]))
    bounds = {"begin": ints([0, 1, 0]), "end": ints([3, 5, 4]), "strides": ints([1, 2, 3])}
    c.add(relay.StridedSetOp, x, c.x(3, 2, 2), **bounds)
    c.add(relay.StridedSetOp, c.net.constant(c.net.numbers(c.dtype, 3, 5, 4)), c.x(3, 2, 2), **bounds)
    for part, start in (((3, 2, 4), c.below(7, 3, low=-3)), ((1, 5, 2), c.below(4, 3)), ((3, 5, 4), c.below(9, 3))):
        c.add(relay.DynamicUpdateSliceOp, x, c.x(*part), start)
    c.add(relay.DynamicUpdateSliceOp, x, c.x(3, 0, 4), c.below(4, 3))
    c.add(relay.DynamicUpdateSliceOp, x, c.x(2, 2, 2), c.net.argument(c.net.numbers("uint8", 3)))
    c.add(relay.InvertPermutationOp, c.net.argument(c.net.rng.permutation(9).astype(np.int32)))
    c.add(relay.UnravelIndexOp, c.below(24, 2, 3), shape=ints([2, 3, 4]))


@pytest.mark.parametrize("dtype", ["float32", *(pytest.param(d, marks=pytest.mark.slow) for d in ("int8", "int32"))])
@pytest.mark.parametrize(
    "add", [shapes, likes, creations, pytest.param(indexing, marks=pytest.mark.ci)], ids=lambda add: add.__name__
)
def test_transforms(add: Callable[[Cases], None], dtype: str) -> None:
    cases = Cases(5, dtype)
    add(cases)
    cases.net.check()
