"""The integer op that replaces a float op between dequantize and quantize with rounding to even: one function per
kind of op, with the formulas of ONNX Runtime's kernels (`relay.frontend.importing.fused`), for signed and unsigned
values."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, StringAttr, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from relay.byoc.regions import constant_of
from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, ints, scalar_attr, to_numpy
from relay.dialects.op import DYNAMIC, Origin, TensorOp, rank, shape, tensor
from relay.frontend.importing import fused
from relay.frontend.importing.builder import number
from relay.frontend.importing.fused import Codes, Properties
from relay.interpreters import evaluate
from relay.interpreters.arithmetic import code_range
from relay.quantize.fused_sums import BITS, Convolution, Product, Stays, Sums, codes_of, constant_codes, source
from relay.quantize.layers import clamp_bounds
from relay.transforms.expansion import Expansion

OFF = 0.0101
"""The largest relative difference of a bias's scale from the scale of the sums for which the bias is still used; ONNX
Runtime 1.32.0 fuses at 0.0101 and no longer at 0.015."""
DEEPEST = 32
"""The maximum number of consecutive elementwise ops that become one lookup table."""


def dequantize_later(op: TensorOp) -> list[Operation] | None:
    """op (dequantize %x) => dequantize (op %x), for ops that move elements or choose among them; None for others."""
    data = op.data_operands()
    if op.origin not in (Origin.MOVED, Origin.SELECTED) or len(op.results) != 1 or not data:
        return None
    if clamp_bounds(op) is not None or isinstance(op, relay.ReluOp):
        return None
    found = [source(value) for value in data]
    first = found[0]
    if first is None or any(each is None or each[1] != first[1] for each in found):
        return None
    properties: dict[str, Attribute] = dict(op.properties)
    for name in op.FILLS:
        if float(to_numpy(op.properties[name])) != 0.0:
            return None
        properties[name] = scalar_attr(first[1].zero_point, tensor(first[0]).element_type)
    codes = {value: each[0] for value, each in zip(data, found, strict=True) if each is not None}
    moved = type(op).make([codes.get(value, value) for value in op.operands], properties, like=op)
    moved.results[0].name_hint = op.results[0].name_hint
    old = data[0].owner
    assert isinstance(old, qnn.DequantizeOp)
    return [moved, qnn.DequantizeOp.make([moved.results[0]], dict(old.properties), like=op)]


class Fold:
    """Builds the ops that replace one `qnn.quantize` and the float ops before it, in `new`; raises Stays if it
    cannot."""

    def __init__(self, quantize: qnn.QuantizeOp):
        self.quantize, self.new = quantize, Expansion(quantize)
        target = codes_of(quantize, quantize.result)
        if target is None:
            raise Stays(quantize, "its result has a scale per index of an axis")
        self.target = target
        self.low, self.high = code_range(target.dtype)

    def run(self) -> SSAValue:
        return self.codes(self.quantize.input)

    def codes(self, value: SSAValue) -> SSAValue:
        """Build integer ops that compute the float `value` in quantized form, and return their result. Raises Stays,
        with the reason, if the op that computes it has no such form."""
        op = value.owner
        if not isinstance(op, TensorOp):
            raise Stays(self.quantize, "it quantizes what is not computed here")
        for attempt in (self.binary, self.table, self.layer, self.concatenation, self.mean, self.pool, self.softmax):
            if (found := attempt(op)) is not None:
                return found
        if (bounds := clamp_bounds(op)) is not None or isinstance(op, relay.ReluOp):
            self.clamp(*((0.0, np.inf) if bounds is None else bounds))
            return self.codes(self.alone(op, op.operands[0]))
        if op.origin is Origin.MOVED and not op.FILLS and len(op.data_operands()) == 1:
            inner = op.data_operands()[0]
            moved = self.codes(self.alone(op, inner))
            operands = [moved if each is inner else each for each in op.operands]
            return self.new.value(type(op), *operands, properties=dict(op.properties))
        raise Stays(op, f"{op.name} has no form on codes")

    def alone(self, op: Operation, value: SSAValue) -> SSAValue:
        """The value, if `op` is its only reader. Raises Stays otherwise."""
        if not value.has_one_use() and isinstance(value.owner, Operation):
            raise Stays(value.owner, f"its result is used without {op.name}, too")
        return value

    def read(self, op: Operation, value: SSAValue) -> tuple[SSAValue, Codes]:
        """The 8-bit quantized operand of an op, and its parameters. Raises Stays if the operand or the result has
        another type."""
        if self.target.dtype.itemsize != 1:
            raise Stays(op, BITS)
        return Sums(self.new).read(op, value)

    def clamp(self, low: float, high: float) -> None:
        """Narrow the result's range to the quantized bounds of a clamp; quantization is monotonic, so clamping may
        follow it."""
        bottom, top = (int(code) for code in self.target.codes(np.asarray([low, high])))
        self.low, self.high = min(max(self.low, bottom), top), max(min(self.high, top), bottom)

    def clamped(self) -> Properties:
        if (self.low, self.high) == code_range(self.target.dtype):
            return {}
        return {"min": number(self.low), "max": number(self.high)}

    def binary(self, op: TensorOp) -> SSAValue | None:
        """quantize (add (dequantize %a), (dequantize %b))  =>  qnn.add %a, %b; likewise for products"""
        if not isinstance(op, relay.AddOp | relay.MultiplyOp) or not _is_of_codes(op):
            return None
        (lhs, a), (rhs, b) = self.read(op, op.lhs), self.read(op, op.rhs)
        if not a.dtype == b.dtype == self.target.dtype:
            raise Stays(op, f"its codes are {a.dtype}, {b.dtype} and {self.target.dtype}")
        if isinstance(op, relay.AddOp):
            properties = fused.add(a, b, self.target) | self.clamped()
            return self.new.value(qnn.AddOp, lhs, rhs, properties=properties)
        properties = fused.multiply(a, b, self.target) | self.clamped()
        return self.new.value(qnn.MulOp, lhs, rhs, properties=properties)

    def table(self, op: TensorOp) -> SSAValue | None:
        """quantize (elementwise ops with scalars (dequantize %x)) => relay.lookup %x; except a clamped sum or product
        of %x with itself, for which ONNX Runtime uses its kernel for two operands"""
        chain = chain_of(op)
        if chain is None or (len(chain[1]) == 2 and _is_clamp(op) and _is_of_codes(op.operands[0].owner)):
            return None
        dequantize, ops = chain
        found = codes_of(dequantize, dequantize.input)
        if found is None or found.dtype.itemsize > 2 or found.dtype.isbuiltin == 2:
            return None
        every = found.every().astype(found.dtype)
        known: dict[SSAValue, Array] = {dequantize.result: evaluate(dequantize, [every])[0]}
        for each in ops:
            given = [known[value] if value in known else _number(value) for value in each.operands]
            known[each.results[0]] = evaluate(each, given)[0]
        result = ops[-1].results[0] if ops else dequantize.result
        table = np.clip(self.target.codes(known[result]), self.low, self.high)
        if found.dtype == self.target.dtype and np.array_equal(table, every):
            return dequantize.input
        return self.new.lookup(dequantize.input, table, table.dtype)

    def concatenation(self, op: TensorOp) -> SSAValue | None:
        """quantize (concatenate (dequantize %a), ...)  =>  concatenate (relay.lookup %a), ..."""
        if not isinstance(op, relay.ConcatenateOp):
            return None
        parts = [self.table(each) if isinstance(each := v.owner, qnn.DequantizeOp) else None for v in op.inputs]
        codes = [part for part in parts if part is not None]
        if len(codes) != len(parts):
            raise Stays(op, "an operand is no dequantised code of one scale")
        return self.new.value(relay.ConcatenateOp, *codes, properties=dict(op.properties))

    def mean(self, op: TensorOp) -> SSAValue | None:
        """quantize (global_avg_pool2d (dequantize %x))  =>  qnn.requantize (sum %x); likewise for PyTorch's means"""
        if isinstance(op, relay.GlobalAvgPool2dOp):
            axes, kept = [a for a, letter in enumerate(op.layout.data) if letter in "HW"], BoolAttr.from_bool(True)
        elif isinstance(op, relay.MeanOp) and self.target.inverse:
            axes, kept = op.axes(), op.keepdims
        else:
            return None
        codes, found = self.read(op, op.operands[0])
        dims = [shape(op.operands[0])[axis] for axis in axes]
        if DYNAMIC in dims:
            raise Stays(op, "the size of its images is not known")
        keep: Properties = {"axis": ints(axes), "keepdims": kept}
        total = self.new.value(relay.SumOp, self.new.cast(codes, i32), properties=keep)
        properties = fused.mean(found, self.target, prod(dims)) | self.clamped()
        return self.new.value(qnn.RequantizeOp, total, properties=properties)

    def pool(self, op: TensorOp) -> SSAValue | None:
        """quantize (avg_pool2d (dequantize %x)) => the same ops, with the rounding `even_sum` of quantize, which adds
        the zero point before rounding"""
        if not isinstance(op, relay.AvgPool2dOp) or self.clamped() or self.target.inverse:
            return None
        self.read(op, op.data)
        properties = dict(self.quantize.properties) | {"rounding": StringAttr("even_sum")}
        return self.new.value(qnn.QuantizeOp, op.result, properties=properties)

    def softmax(self, op: TensorOp) -> SSAValue | None:
        """quantize (softmax (dequantize %x))  =>  qnn.table_softmax %x, along the last axis"""
        if not isinstance(op, relay.SoftmaxOp) or self.clamped() or self.target.inverse:
            return None
        codes, found = self.read(op, op.data)
        if float(to_numpy(op.beta)) != 1.0 or found.dtype != self.target.dtype:
            raise Stays(op, f"it takes {found.dtype} and gives {self.target.dtype}, or has a factor")
        order = list(range(rank(codes)))
        axis = op.axis.value.data % len(order)
        order[axis], order[-1] = order[-1], order[axis]
        codes = self.new.transpose(codes, order)
        result = self.new.value(qnn.TableSoftmaxOp, codes, properties=fused.softmax(found, self.target))
        return self.new.transpose(result, order)

    def layer(self, op: TensorOp) -> SSAValue | None:
        """quantize (add? (conv2d or product (dequantize %x), (dequantize %w)), bias)  =>  qnn.requantize (bias_add?
        (qnn.conv2d or qnn.dense %x, %w), %b)"""
        anchor, bias = op, None
        if isinstance(op, relay.BiasAddOp):
            anchor, bias = op.data.owner, op.bias
        elif isinstance(op, relay.AddOp):
            sums, bias = (op.lhs, op.rhs) if isinstance(op.lhs.owner, relay.MatmulOp) else (op.rhs, op.lhs)
            anchor = sums.owner
            # Convolutions have their biases in BiasAddOp. For BatchMatmulOp, whose sizes the importer does not know,
            # ONNX Runtime adds a float bias, too.
            if not isinstance(anchor, relay.MatmulOp | relay.DenseOp) or shape(op.result) != shape(sums):
                return None
        if not isinstance(anchor, Convolution | Product):
            return None
        if bias is not None:
            self.alone(op, anchor.results[0])
        self.read(anchor, anchor.operands[0])
        between = isinstance(anchor, relay.MatmulOp | relay.BatchMatmulOp)
        computed = between and constant_codes(anchor.operands[1]) is None
        if computed and bias is not None:
            return None
        sums, axis, scale = Sums(self.new).of(anchor)
        if bias is not None:
            vector = bias_codes(bias, scale, shape(sums)[axis])
            if vector is None:
                raise Stays(op, "its bias is no constant vector along the channels, or of another scale than the sums")
            position: Properties = {"axis": IntegerAttr(axis, i64)}
            sums = self.new.value(relay.BiasAddOp, sums, self.new.constant(vector, np.int32), properties=position)
        if computed:
            properties = fused.requantize(scale, self.target) | self.clamped()
            return self.new.value(qnn.RequantizeOp, sums, properties=properties)
        properties = fused.requantize(scale, self.target, axis) | self.clamped()
        return self.new.value(qnn.RequantizeOp, sums, properties=properties)


def bias_codes(value: SSAValue, scale: Array, channels: int) -> Array | None:
    """The int32 codes of a constant bias, a vector of `channels` elements, at the scale of the sums (`scale`). A
    quantized bias keeps its codes if its scale equals that of the sums, up to a tolerance; a float bias is quantized,
    halves to even, if it is a vector, as ONNX Runtime does. None for any other bias."""
    op = value.owner
    if isinstance(op, qnn.DequantizeOp) and not np.any(to_numpy(op.zero_point)):
        codes, own = constant_of(op.input), to_numpy(op.scale).reshape(-1)
        if codes is None or codes.dtype != np.int32 or own.size not in (1, scale.size, channels):
            return None
        if bool((np.abs(own - scale) > OFF * scale).any()):
            return None
    elif (reals := constant_of(value)) is not None and reals.shape == (channels,):
        steps = np.rint(reals.astype(np.float32) / scale).astype(np.float64)
        codes = np.clip(steps, *code_range(np.dtype(np.int32))).astype(np.int32)
    else:
        return None
    if codes.size not in (1, channels) or (codes.ndim > 1 and codes.shape[-1] != codes.size):
        return None
    return np.ascontiguousarray(np.broadcast_to(codes.reshape(-1), [channels]))


def chain_of(op: TensorOp) -> tuple[qnn.DequantizeOp, Sequence[TensorOp]] | None:
    """The elementwise ops, in order, that compute the op's result from one dequantized value and scalar constants, with
    that value's dequantize; None if there are other inputs or too many ops."""
    found: dict[Operation, None] = {}
    roots: set[qnn.DequantizeOp] = set()

    def visit(each: Operation | object) -> bool:
        if isinstance(each, qnn.DequantizeOp):
            roots.add(each)
            return len(roots) == 1
        if not isinstance(each, TensorOp) or not each.ELEMENTWISE or len(each.results) != 1 or len(found) > DEEPEST:
            return False
        if each in found:
            return True
        for value in each.operands:
            if _is_number(value):
                continue
            if not visit(value.owner):
                return False
        found[each] = None
        return True

    if not visit(op) or not roots:
        return None
    (root,) = roots
    ops = [each for each in found if isinstance(each, TensorOp)]
    if any(shape(each.results[0]) != shape(root.result) for each in ops):
        return None
    return root, ops


def _is_clamp(op: TensorOp) -> bool:
    return isinstance(op, relay.ReluOp) or clamp_bounds(op) is not None


def _is_of_codes(op: object) -> bool:
    """Whether the op is a sum or product whose operands are all dequantized values."""
    operands = op.operands if isinstance(op, relay.AddOp | relay.MultiplyOp) else ()
    return bool(operands) and all(isinstance(value.owner, qnn.DequantizeOp) for value in operands)


def _is_number(value: SSAValue) -> bool:
    return isinstance(value.owner, relay.ConstantOp) and prod(shape(value)) == 1


def _number(value: SSAValue) -> Array:
    found = constant_of(value)
    assert found is not None
    return found.reshape(())
