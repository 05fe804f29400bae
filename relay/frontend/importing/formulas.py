"""`Scalar`: tensor formulas written with Python's operators; and formulas that several formats share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.op import TensorOp
from relay.frontend.importing.tensors import Property, TensorBuilder

_OPS = {
    name: each
    for each in relay.Relay.operations if issubclass(each, TensorOp)
    for name in (each.name.rpartition(".")[2], each.__name__.removesuffix("Op"))
}  # fmt: skip


def named(same: str, **others: type[TensorOp]) -> dict[str, type[TensorOp]]:
    """Return a table of ops by the operator's name in a model format. An operator in `same` has the name of its op
    (`floor_divide`) or of the op's class without `Op` (`FloorDivide`); `others` has the ops of all other operators."""
    return {name: _OPS[name] for name in same.split()} | others


class Scalar:
    """A value in a formula written with Python's operators; numbers become constants of its element type."""

    def __init__(self, importer: TensorBuilder, value: SSAValue) -> None:
        self.importer, self.value = importer, value

    def of(self, kind: type[TensorOp], *others: Scalar | float, **properties: Property) -> Scalar:
        values = [e.value if isinstance(e, Scalar) else self.importer.like(e, self.value) for e in others]
        return Scalar(self.importer, self.importer.call(kind, self.value, *values, **properties))

    def number(self, value: float) -> Scalar:
        return Scalar(self.importer, self.importer.like(value, self.value))

    def __add__(self, other: Scalar | float) -> Scalar:
        return self.of(relay.AddOp, other)

    def __sub__(self, other: Scalar | float) -> Scalar:
        return self.of(relay.SubtractOp, other)

    def __mul__(self, other: Scalar | float) -> Scalar:
        return self.of(relay.MultiplyOp, other)

    def __truediv__(self, other: Scalar | float) -> Scalar:
        return self.of(relay.DivideOp, other)

    def __gt__(self, other: Scalar | float) -> Scalar:
        return self.of(relay.GreaterOp, other)

    def __lt__(self, other: Scalar | float) -> Scalar:
        return self.of(relay.LessOp, other)

    def __neg__(self) -> Scalar:
        return self.of(relay.NegativeOp)

    def exp(self) -> Scalar:
        return self.of(relay.ExpOp)

    def between(self, low: float, high: float) -> Scalar:
        return Scalar(self.importer, self.importer.clip(self.value, low, high))

    def to_even(self) -> Scalar:
        """Round to the nearest integer, halves to even: if x is half-way between two integers, the result is `2 *
        round(x / 2)`."""
        tie = (self - self.of(relay.FloorOp)).of(relay.EqualOp, 0.5)
        return tie.choose((self * 0.5).of(relay.RoundOp) * 2, self.of(relay.RoundOp), self)

    def choose(self, first: Scalar | float, second: Scalar | float, like: Scalar) -> Scalar:
        """Select elementwise: `first` where this boolean tensor is true, else `second`; numbers get the element type of
        `like`."""
        given = (e if isinstance(e, Scalar) else like.number(e) for e in (first, second))
        return Scalar(self.importer, self.importer.call(relay.WhereOp, self.value, *(each.value for each in given)))


def bounded(importer: TensorBuilder, x: SSAValue, low: SSAValue | None, high: SSAValue | None) -> SSAValue:
    """The value clamped to at least `low` and then to at most `high`; either bound may be None."""
    for kind, bound in ((relay.MaximumOp, low), (relay.MinimumOp, high)):
        x = x if bound is None else importer.call(kind, x, bound)
    return x


def normed(
    importer: TensorBuilder, x: SSAValue, axes: Sequence[int], kind: type[TensorOp], vectors: Sequence[SSAValue],
    epsilon: float,
) -> SSAValue:  # fmt: skip
    """Normalize rows with an op of class `kind`, whose parameters `vectors`, such as scale and offset, have one element
    per position in a row. A row extends along `axes`; several axes, whose sizes must be known, are transposed to the
    end, merged, and restored in the result."""
    rank, several = importer.rank(x), len(axes) > 1
    order = [axis for axis in range(rank) if axis not in axes] + [*axes]
    x = importer.transpose(x, order)
    dims = importer.shape(x)
    if several:
        size = math.prod(dims[-len(axes) :])
        x = importer.reshape(x, [*dims[: -len(axes)], size])
        vectors = [importer.reshape(each, [size]) for each in vectors]
    found = importer.call(kind, x, *vectors, epsilon=epsilon)
    found = importer.reshape(found, dims) if several else found
    return importer.transpose(found, [order.index(axis) for axis in range(rank)])


def logsumexp(importer: TensorBuilder, x: SSAValue, axes: Sequence[int], keep: bool) -> SSAValue:
    """`log(sum(exp(x - max))) + max` over axes; an infinite maximum is the result itself, since the difference to it
    would be NaN."""
    largest = Scalar(importer, importer.call(relay.MaxOp, x, axis=axes, keepdims=True))
    base = largest.of(relay.IsfiniteOp).choose(largest, 0, largest)
    parts = (Scalar(importer, x) - base).exp().value
    total = Scalar(importer, importer.call(relay.SumOp, parts, axis=axes, keepdims=True))
    found = (total.of(relay.LogOp) + base).value
    return found if keep else importer.call(relay.SqueezeOp, found, axis=axes)


def truths(importer: TensorBuilder, value: SSAValue) -> SSAValue:
    """A boolean tensor: true where the value is not 0."""
    if importer.element(value) == i1:
        return value
    return importer.call(relay.NotEqualOp, value, importer.like(0, value))


def norm(
    importer: TensorBuilder, x: SSAValue, power: float, reduced: Callable[[type[TensorOp], SSAValue], SSAValue]
) -> SSAValue:
    """`sum(|x| ** p) ** (1 / p)` with p = `power`; for p = inf the largest magnitude, for p = -inf the smallest, for p
    = 0 the number of elements that are not 0. `reduced` appends the reduction, an op of the given class."""
    size = Scalar(importer, x if power == 2 else importer.call(relay.AbsOp, x))
    if math.isinf(power):
        return reduced(relay.MaxOp if power > 0 else relay.MinOp, size.value)
    if power == 0:
        there = importer.call(relay.NotEqualOp, x, importer.like(0, x))
        return importer.cast(reduced(relay.SumOp, importer.cast(there, i64)), importer.element(x))
    parts = size if power == 1 else size * size if power == 2 else size.of(relay.PowerOp, power)
    total = Scalar(importer, reduced(relay.SumOp, parts.value))
    return (total if power == 1 else total.of(relay.SqrtOp) if power == 2 else total.of(relay.PowerOp, 1 / power)).value


def channels_from_pixels(importer: TensorBuilder, image: SSAValue, block: int) -> SSAValue:
    """Space to depth of an image [n, c, h, w]: each block of `block` x `block` pixels becomes one pixel with more
    channels, in which those that come from one channel are adjacent."""
    n, c, h, w = importer.shape(image)
    parts = importer.reshape(image, [n, c, h // block, block, w // block, block])
    turned = importer.transpose(parts, (0, 1, 3, 5, 2, 4))
    return importer.reshape(turned, [n, c * block**2, h // block, w // block])
