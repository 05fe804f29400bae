"""Fake quantization in float: inserts `qnn.quantize` and `qnn.dequantize` around the ops that `quantize-annotate`
marked."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from relay.byoc.regions import constant_of
from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, elements, ints
from relay.dialects.op import shape
from relay.frontend.importing.builder import number, real, scale_attr
from relay.quantize import marks
from relay.quantize.layers import Layer, clamp_bounds, constant_before, layers_of
from relay.quantize.parameters import Parameters, of_range
from relay.quantize.rules import BINARY, data_operands, fused_clamp, mean_of, same_scale
from relay.quantize.weights import bias_codes, bias_scale
from relay.transforms.expansion import inserted


class Insertion:
    """Inserts `qnn.quantize` and `qnn.dequantize` into one function: before the operands of marked ops, and before the
    users of their results."""

    def __init__(self, function: FuncOp, dtype: str):
        self.function = function
        self.dtype = dtype
        self.known: dict[SSAValue, Parameters] = {}
        """The parameters of values that were quantized and dequantized again."""
        self.made: dict[tuple[SSAValue, Parameters], SSAValue] = {}
        self.layers: dict[Operation, Layer] = {layer.anchor: layer for layer in layers_of(function)}
        self.inner: set[Operation] = {op for layer in self.layers.values() for op in layer.ops[1:]}
        for op in function.body.block.ops:
            self.inner.update(part for part in (mean_of(op), fused_clamp(op)) if part is not None and marks.integer(op))

    def run(self) -> None:
        for op in list(self.function.body.block.ops):
            if not marks.integer(op):
                continue
            if op not in self.inner:
                self.operands(op)
            if op in self.layers:
                self.weights(self.layers[op])
            value = op.results[0]
            found = marks.parameters(value, self.dtype)
            if found is not None and value.first_use is not None:
                users = list(value.uses)
                through = self.through(value, found)
                for use in users:
                    use.operation.operands[use.index] = through

    def operands(self, op: Operation) -> None:
        """Replace the data operands of an op by their quantized and dequantized values."""
        wanted = marks.parameters(op.results[0], self.dtype) if same_scale(op) else None
        data = {*data_operands(op)}
        for position, value in enumerate(list(op.operands)):
            if value in data:
                op.operands[position] = self.coded(value, wanted)
            elif isinstance(op, BINARY) and clamp_bounds(op) is None and (array := constant_of(value)) is not None:
                op.operands[position] = self.constant(op, value, array)

    def coded(self, value: SSAValue, wanted: Parameters | None) -> SSAValue:
        """Quantize and dequantize the value with its own parameters, and then with `wanted` if these differ; return the
        result."""
        if value not in self.known:
            found = marks.parameters(value, self.dtype)
            assert found is not None, "quantize-calibrate names every operand"
            value = self.through(value, found)
        return value if wanted is None or wanted == self.known[value] else self.through(value, wanted)

    def through(self, value: SSAValue, found: Parameters) -> SSAValue:
        """Insert `qnn.dequantize (qnn.quantize %value)`, once for each value and parameters; returns the result."""
        if (value, found) in self.made:
            return self.made[value, found]
        owner = value.owner
        like = owner if isinstance(owner, Operation) else None
        properties: dict[str, Attribute] = {"scale": real(found.scale), "zero_point": number(found.zero_point)}
        codes = qnn.QuantizeOp.make([value], {**properties, "out_dtype": found.element}, like=like)
        codes.result.name_hint = value.name_hint
        reals = qnn.DequantizeOp.make([codes.result], properties, like=like)
        point = InsertPoint.after(owner) if isinstance(owner, Operation) else InsertPoint.at_start(owner)
        Rewriter.insert_op([codes, reals], point)
        if (name := marks.name_of(value)) is not None:
            codes.attributes[marks.VALUE] = StringAttr(name)
        self.made[value, found] = reals.result
        self.known[reals.result] = found
        return reals.result

    def constant(self, op: Operation, value: SSAValue, array: Array) -> SSAValue:
        """Quantize and dequantize a constant operand of a sum or product, with parameters of its own."""
        found = of_range(float(array.min(initial=0.0)), float(array.max(initial=0.0)), self.dtype)
        properties: dict[str, Attribute] = {"scale": real(found.scale), "zero_point": number(found.zero_point)}
        return self.reals(op, found.codes(array), value, properties)

    def reals(self, op: Operation, codes: Array, old: SSAValue, properties: dict[str, Attribute]) -> SSAValue:
        """Insert, before the op, a constant of quantized values with the label of `old`, and its `qnn.dequantize` with
        these properties; return the result of the latter."""
        return inserted(op, qnn.DequantizeOp, [constant_before(op, codes, old)], properties)

    def weights(self, layer: Layer) -> None:
        """Replace the kernel and the bias of a layer by dequantized constants."""
        found = self.known[layer.anchor.data]
        kernel = marks.kernel(layer.anchor, layer.axis, "uint8" if self.dtype == "uint8" else "int8")
        assert kernel is not None, "quantize-calibrate chooses the scales of every layer"
        several = kernel.scale.size > 1
        axis = IntegerAttr(layer.axis if several else -1, i64)
        bias, old = layer.vector, layer.anchor.kernel
        properties: dict[str, Attribute] = {
            "scale": scale_attr(kernel.scale),
            "zero_point": elements(np.zeros(kernel.scale.size), np.int32, label="zero_point")
            if several
            else number(kernel.zero_point),
            "axis": axis,
        }
        value = self.reals(layer.anchor, kernel.codes(layer.weights), old, properties)
        if shape(value) != shape(old):
            value = inserted(layer.anchor, relay.ReshapeOp, [value], {"newshape": ints(shape(old))})
        layer.anchor.operands[1] = value
        if layer.bias is not None and bias is not None:
            scales = bias_scale(kernel, found)
            zeros = elements(np.zeros(scales.size), np.int32, label="zero_point") if several else number(0)
            properties = {"scale": scale_attr(scales), "zero_point": zeros}
            codes = bias_codes(bias, kernel, found)
            layer.bias.operands[1] = self.reals(layer.bias, codes, layer.bias.bias, properties)
