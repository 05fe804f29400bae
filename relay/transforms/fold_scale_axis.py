"""The pass `fold-scale-axis`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from relay.dialects import relay
from relay.dialects.attributes import Array, elements
from relay.dialects.layout import Layout
from relay.dialects.op import axis_of, rank
from relay.transforms.expansion import Expansion, known_numbers
from relay.transforms.legalization import PatternPass

Product = relay.Conv2dOp | relay.DenseOp


class ScaleAfterProduct(RewritePattern):
    """multiply (nn.conv2d %x, w), s  =>  nn.conv2d %x, w * s; of nn.dense likewise"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: relay.MultiplyOp, rewriter: PatternRewriter) -> None:
        for value, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            inner = value.owner
            if not isinstance(inner, Product) or not value.has_one_use() or value.type != op.result.type:
                continue
            factors = along(other, channel(inner, value), rank(value))
            weights = None if factors is None else scaled(inner, factors, "O")
            if weights is None:
                continue
            new = Expansion(op)
            kernel = weight(new, inner, weights)
            new.replace(rewriter, new.value(type(inner), inner.data, kernel, properties=inner.properties))
            rewriter.erase(inner)
            return


class ScaleAfterSum(RewritePattern):
    """multiply (add (product), b), s  =>  add (multiply (product), s), b * s; of nn.bias_add likewise"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: relay.MultiplyOp, rewriter: PatternRewriter) -> None:
        for value, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            inner = value.owner
            if not isinstance(inner, relay.AddOp | relay.BiasAddOp) or not value.has_one_use():
                continue
            product, bias = inner.operands
            source = product.owner
            if not isinstance(source, Product) or not product.has_one_use() or value.type != op.result.type:
                continue
            axis = channel(source, product)
            factors = along(other, axis, rank(value))
            at = axis_of(inner.axis.value.data, rank(value), op.name) if isinstance(inner, relay.BiasAddOp) else None
            numbers = along(bias, axis, rank(value), at)
            if factors is None or numbers is None or product.type != value.type:
                continue
            if scaled(source, factors, "O") is None:
                continue
            new = Expansion(op)
            products = new.value(relay.MultiplyOp, product, other)
            sums = numbers * factors
            sums = sums.reshape([-1, *[1] * (rank(value) - 1 - axis)]) if sums.ndim else sums
            new.replace(rewriter, new.value(relay.AddOp, products, new.constant_like(sums, value)))
            rewriter.erase(inner)
            return


class ScaleBeforeProduct(RewritePattern):
    """nn.conv2d (multiply %x, s), w  =>  nn.conv2d %x, s * w; the same for nn.dense. s is a constant, a scalar or one
    number for each input channel."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: relay.Conv2dOp | relay.DenseOp, rewriter: PatternRewriter) -> None:
        inner = op.data.owner
        if not isinstance(inner, relay.MultiplyOp) or not op.data.has_one_use():
            return
        for value, other in ((inner.lhs, inner.rhs), (inner.rhs, inner.lhs)):
            if value.type != inner.result.type:
                continue
            factors = along(other, channel(op, op.data), rank(value))
            weights = None if factors is None else scaled(op, factors, "I")
            if weights is None:
                continue
            new = Expansion(op)
            kernel = weight(new, op, weights)
            new.replace(rewriter, new.value(type(op), value, kernel, properties=op.properties))
            rewriter.erase(inner)
            return


def channel(op: Product, value: SSAValue) -> int:
    """The axis of the channels in the product's data or result; -1 if the layout splits them into blocks (NCHW4c)."""
    if isinstance(op, relay.DenseOp):
        return rank(value) - 1
    layout = Layout.parse((op.data_layout if value is op.data else op.result_layout).data)
    return -1 if layout.split else layout.index("C")


def along(value: SSAValue, axis: int, width: int, at: int | None = None) -> Array | None:
    """The elements, as a scalar or a vector, of a float constant that broadcasts against a tensor of rank `width` and
    varies only along the tensor's axis `axis`; None if the value varies along another axis or is not constant. `at`:
    the axis of the tensor along which the constant vector lies; without it, the constant broadcasts as in numpy."""
    numbers = known_numbers(value)
    if axis < 0 or numbers is None or numbers.dtype.kind != "f" or numbers.ndim > width:
        return None
    if at is not None:
        return numbers if at == axis else None
    dims = (*[1] * (width - numbers.ndim), *numbers.shape)
    if any(size != 1 for i, size in enumerate(dims) if i != axis):
        return None
    return numbers.reshape(-1) if numbers.size > 1 else numbers.reshape(())


def scaled(op: Product, factors: Array, channels: str) -> Array | None:
    """The kernel times a factor, or a factor per output channel ("O") or input channel ("I"); None if it is not a float
    constant, or has groups of input channels."""
    kernel = known_numbers(op.kernel)
    if kernel is None or kernel.dtype.kind != "f":
        return None
    if factors.ndim == 0:
        return kernel * factors
    layout = "OI" if isinstance(op, relay.DenseOp) else op.kernel_layout.data
    if isinstance(op, relay.Conv2dOp):
        if op.depthwise:  # [h, w, channels, multiplier]
            return kernel * (factors[:, None] if channels == "I" else factors.reshape(kernel.shape[2:]))
        if channels == "I" and op.groups.value.data != 1:
            return None
    return kernel * factors.reshape([-1 if letter == channels else 1 for letter in layout])


def weight(new: Expansion, op: Product, numbers: Array) -> SSAValue:
    """Add a constant op with the new kernel `numbers`, labelled like the old kernel of `op` ("weight" if that has no
    label); return its result."""
    owner = op.kernel.owner
    old: StringAttr | None = owner.label if isinstance(owner, relay.ConstantOp) else None
    value = elements(numbers, label="weight" if old is None else old.data)
    return new.add(relay.ConstantOp, [], {"value": value}).result


@dataclass(frozen=True)
class FoldScaleAxis(PatternPass):
    """Fold constant channel factors into the weights of a float convolution or matrix product. The factors may be
    applied before or after it; a bias or another constant sum in between is scaled, too. Rounding changes: results
    differ by a few units in the last place, or not at all where the factors are powers of two. Where another op reads
    the unscaled result, both are kept."""

    name: ClassVar[str] = "fold-scale-axis"
    opt_level = 3
    requires = ("inference", "folded")
    invalidates = ()
    why = "folds per-channel factors into weights"
    PATTERNS = (ScaleAfterProduct, ScaleAfterSum, ScaleBeforeProduct)
