"""`Importer`: the state of a graph under construction, and methods that build ops.

The import functions of operators (`relay.frontend.onnx.table.TABLE`) get it as their first argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, Block, SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array, element_type
from relay.frontend.importing.builder import value_name
from relay.frontend.importing.tensors import TensorBuilder
from relay.frontend.onnx.model import Model, dtype_of_number
from relay.frontend.onnx.node import Node

Subgraph = Callable[[Node, onnx.GraphProto, Block, Sequence[SSAValue]], list[SSAValue]]
"""Builds a subgraph of a node at the end of a block, with these values as its inputs; returns its outputs."""


@dataclass(slots=True)
class Frame:
    """The scope of a graph or function body: the values of its names."""

    block: Block
    outer: Frame | None = None
    """The scope whose names a subgraph sees as well."""
    values: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    tensors: dict[str, onnx.TensorProto] = field(default_factory=dict[str, onnx.TensorProto])
    """Initializers, which become constants when they are first used."""
    attributes: Mapping[str, onnx.AttributeProto] = field(default_factory=dict[str, onnx.AttributeProto])
    """The attributes to which nodes of a function body may refer."""
    opsets: Mapping[str, int] = field(default_factory=dict[str, int])
    within: str = ""
    """The title of the function or subgraph, which precedes the titles of its nodes in errors; empty for the main
    graph."""


@dataclass(frozen=True)
class NarrowWeights:
    """Constant weights in few bits: quantized values [unit, block, column]; zero points and scales [unit, block]."""

    codes: Array
    zeros: Array
    scales: Array
    names: tuple[str, str]
    """The names of the quantized values and of the scales in the file."""


@dataclass(frozen=True)
class Counted:
    """For a tensor whose size depends on run-time values: the axis along which only the first indices are valid, and
    their count."""

    axis: int
    count: SSAValue
    """The number of valid indices along the axis, a scalar."""


class Importer(TensorBuilder):
    """The block under construction, and the value of each name."""

    def __init__(self, model: Model, names: set[str], numerics: str) -> None:
        super().__init__(names)
        self.model, self.numerics = model, numerics
        self.frame = Frame(self.block, opsets=model.opsets)
        self.subgraph: Subgraph
        self.narrow: dict[SSAValue, Callable[[bool], NarrowWeights | None]] = {}
        """For values that are dequantized few-bit weights [inputs, units], a function that returns the weights (called
        with True for weights [units, inputs]), so that products can use the quantized form."""
        self.counted: dict[SSAValue, Counted] = {}
        """Tensors whose size depends on run-time values, with their counts."""

    def define(self, name: str, value: SSAValue) -> None:
        self.frame.values[name] = value
        if value.name_hint is None:
            value.name_hint = value_name(name)

    def find(self, name: str) -> SSAValue | None:
        """The value of a name in this graph or one around it; None if there is none."""
        frame: Frame | None = self.frame
        while frame is not None:
            if name in frame.values:
                return frame.values[name]
            if name in frame.tensors:
                inner, self.block = self.block, frame.block
                frame.values[name] = self.constant(self.model.array(frame.tensors[name]), name)
                self.block = inner
                return frame.values[name]
            frame = frame.outer
        return None

    def of_few_bits(self, x: SSAValue, weights: SSAValue, turned: bool) -> SSAValue | None:
        """The product of float32 data and weights, if these were dequantized from constants of few bits; else None. The
        weights are [inputs, units] or, if `turned`, [units, inputs]."""
        read = self.narrow.get(weights)
        found = None if read is None or self.element(x) != f32 else read(turned)
        return None if found is None else self.narrow_product(x, found)

    def narrow_product(self, x: SSAValue, weights: NarrowWeights, **properties: int) -> SSAValue:
        """The product of float32 data and weights in few bits."""
        name, scale_name = weights.names
        arrays = {name: weights.codes, scale_name: weights.scales, f"{name}_zero_points": weights.zeros}
        constants = [self.constant(array, label) for label, array in arrays.items()]
        return self.call(relay.WeightOnlyDenseOp, x, *constants, **properties)

    def cast_to(self, value: SSAValue, number: int, node: Node) -> SSAValue:
        """The value cast to the element type with this number in ONNX."""
        return self.cast(value, self.element_of(number, node))

    def element_of(self, number: int, node: Node) -> Attribute:
        dtype = dtype_of_number(number)
        if dtype is None:
            raise node.unsupported(f"computes with the element type {number}")
        return element_type(dtype)
