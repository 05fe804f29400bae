"""`rebatch`: a graph for another batch than the stored one, as if its file had been written for that batch.

The leading axis of every input is the batch. What is computed from inputs and states has it as its leading axis too:
`batch * k` rows, image after image (k is more than 1 behind a reshape that flattens images). Constants that are shapes
or bounds of that axis are written anew. Every kind of operator has a rule under which no image has to do with another;
operators without one, or whose rule does not hold, are refused by name, so that each row of a result is what a batch
of 1 gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import SupportsIndex

import numpy as np

from relay.errors import InvalidArgument, Malformed, Unsupported
from relay.frontend.importing.options import batch_of
from relay.frontend.tflite.model import Operator, Subgraph, Tensor
from relay.frontend.tflite.node import Node

ELEMENTWISE = frozenset(
    "ABS ADD CAST CEIL COS DEQUANTIZE DIV ELU EQUAL EXP FAKE_QUANT FLOOR FLOOR_DIV FLOOR_MOD GELU GREATER "
    "GREATER_EQUAL HARD_SWISH LEAKY_RELU LESS LESS_EQUAL LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGISTIC MAXIMUM "
    "MINIMUM MUL NEG NOT_EQUAL POW PRELU QUANTIZE RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 ROUND RSQRT SELECT_V2 SIGN SIN "
    "SQRT SQUARE SQUARED_DIFFERENCE SUB TANH".split()
)


class _Graph:
    """The graph under work: which tensors have the batch as their leading axis, and new constants."""

    def __init__(self, graph: Subgraph, file: str, stored: int, batch: int):
        self.graph, self.file, self.stored, self.batch = graph, file, stored, batch
        self.tensors = list(graph.tensors)
        variables = [tensor.index for tensor in graph.tensors if tensor.is_variable]
        self.batched = {*graph.inputs, *variables}

    def rows(self, size: int) -> int:
        """The leading axis for the new batch."""
        return size // self.stored * self.batch

    def constant(self, node: Node, number: int, values: Sequence[int]) -> None:
        """Another constant in place of an operator's input."""
        old = node.input(number)
        dtype = old.to_numpy().dtype
        if max(values, default=0) > np.iinfo(dtype).max:
            what = f"batch {self.batch} needs {max(values)} in {old}, whose numbers are {dtype}"
            raise InvalidArgument(node.where, what, "use a smaller batch")
        data = np.asarray(values, dtype).tobytes()
        self.tensors.append(replace(old, index=len(self.tensors), data=memoryview(data)))
        inputs = list(self.operator.inputs)
        inputs[number] = len(self.tensors) - 1
        self.operator = replace(self.operator, inputs=tuple(inputs))

    def convert(self, node: Node) -> Operator:
        """The operator for the new batch. Raises Unsupported where images would meet."""
        self.operator = node.operator
        used = [index for index in node.operator.inputs if index in self.batched]
        if not used:
            return node.operator
        rule = _elementwise if node.operator.kind in ELEMENTWISE else RULES.get(node.operator.kind)
        if rule is None:
            raise node.unsupported("it is not known to keep the images of a batch apart")
        what = rule(self, node, [slot for slot, index in enumerate(node.operator.inputs) if index in self.batched])
        if what:
            raise node.unsupported(f"images of a batch would meet: {what}")
        for index in node.operator.outputs:
            self.scale(self.graph.tensors[index])
        self.batched.update(node.operator.outputs)
        return self.operator

    def scale(self, tensor: Tensor) -> None:
        """Give the tensor the new leading axis."""
        where = f"{self.file}: {tensor}"
        if not tensor.shape or tensor.shape[0] % self.stored:
            raise Unsupported(where, f"of shape {tensor.shape} has no leading axis of {self.stored} images")
        data = tensor.data
        if data is not None:
            if self.stored != 1:
                raise Unsupported(where, f"starts with numbers for {self.stored} images", "use the stored batch")
            data = memoryview(bytes(data) * self.batch)
        shape = (self.rows(tensor.shape[0]), *tensor.shape[1:])
        if math.prod(shape) >= 1 << 40:
            raise Unsupported(where, f"of shape {shape} has too many elements", "use a smaller batch")
        self.tensors[tensor.index] = replace(tensor, shape=shape, shape_signature=shape, data=data)


def rebatch(graph: Subgraph, nodes: Sequence[Node], batch: SupportsIndex, file: str) -> tuple[Subgraph, list[Node]]:
    """The graph, and those operators of it, for that many images.

    Raises Unsupported with every operator that mixes images, InvalidArgument for no number of images.
    """
    batch = batch_of(batch, "from_tflite")
    inputs = [graph.tensors[index] for index in graph.inputs]
    sizes = {next(iter(tensor.shape), 0) for tensor in inputs}
    if sizes == {batch}:
        return graph, list(nodes)
    if len(sizes) != 1 or 0 in sizes:
        what = f"the inputs have shapes {', '.join(str(list(tensor.shape)) for tensor in inputs)}"
        raise Unsupported(file, what, "batch needs inputs of one leading axis")
    work = _Graph(graph, file, sizes.pop(), batch)
    for tensor in (*inputs, *(tensor for tensor in graph.tensors if tensor.is_variable)):
        work.scale(tensor)
    operators: list[Operator] = []
    problems: list[Unsupported] = []
    for node in nodes:
        try:
            operators.append(work.convert(node))
        except Unsupported as error:
            problems.append(error)
            work.batched.update(node.operator.outputs)
    if problems:
        lines = [f"{error.where.removeprefix(f'{file}: ')}: {error.what}" for error in problems[:100]]
        raise Unsupported(
            f"{file}: batch {batch}", "\n  ".join([f"{len(problems)} problem{'s' * (len(problems) > 1)}:", *lines])
        )
    found = replace(graph, tensors=tuple(work.tensors), operators=tuple(operators))
    return found, [Node(file, found, operator) for operator in operators]


def does_not_fit(error: Malformed, batch: SupportsIndex) -> Unsupported:
    """Shapes that disagree for this batch only."""
    return Unsupported(error.where, f"does not take batch {batch}: {error.what}", "use the stored batch")


Rule = Callable[[_Graph, Node, Sequence[int]], str]
"""What makes images meet, empty if nothing does; `slots` are the inputs that have the batch."""


def _elementwise(work: _Graph, node: Node, slots: Sequence[int]) -> str:
    """Operands with the batch have one rank, and no other operand has a higher one."""
    ranks = {len(node.input(slot).shape) for slot in slots}
    every = max(len(node.input(slot).shape) for slot in range(len(node.operator.inputs)) if node.optional(slot))
    if len(ranks) > 1 or every not in ranks:
        return "its operands have different ranks"
    return "" if _per_tensor(node) else "its scales go with the leading axis"


def _per_tensor(node: Node) -> bool:
    tensors = [*(node.input(i) for i in range(len(node.operator.inputs)) if node.optional(i)), node.output()]
    found = [tensor.quantization for tensor in tensors if tensor.quantization is not None]
    return all(len(quantization.scale) == 1 or quantization.axis for quantization in found)


def only(*allowed: int) -> Rule:
    """No input but these has the batch: weights are constants."""

    def rule(work: _Graph, node: Node, slots: Sequence[int]) -> str:
        wrong = [slot for slot in slots if slot not in allowed]
        return f"input {wrong[0]} is computed from the inputs" if wrong else ""

    return rule


def _transposed_convolution(work: _Graph, node: Node, slots: Sequence[int]) -> str:
    size = node.numbers(node.input(0))
    work.constant(node, 0, [work.rows(size[0]), *size[1:]])
    return only(2)(work, node, slots)


def _dense(work: _Graph, node: Node, slots: Sequence[int]) -> str:
    data, kernel = node.input(0), node.input(1)
    images = work.stored if data.shape[0] % work.stored == 0 else 1
    if len(kernel.shape) != 2 or kernel.shape[1] < 1 or math.prod(data.shape) // images % kernel.shape[1]:
        return f"its rows of {kernel.shape[-1:]} go across images"
    return only(0)(work, node, slots)


def _last_axis(work: _Graph, node: Node, slots: Sequence[int]) -> str:
    return "the axis is the leading one" if len(node.input(0).shape) < 2 else only(0)(work, node, slots)


def _reshape(work: _Graph, node: Node, slots: Sequence[int]) -> str:
    out = node.output().shape
    if not out or out[0] % work.stored:
        return f"the new shape {list(out)} has no leading axis of {work.stored} images"
    shape = [work.rows(out[0]), *out[1:]]
    if node.optional(1) is not None:
        work.constant(node, 1, shape)
    else:
        work.operator = replace(work.operator, options={**work.operator.options, "new_shape": tuple(shape)})
    return only(0)(work, node, slots)


def _axes_input(number: int) -> Rule:
    """Axes in a constant input."""

    def rule(work: _Graph, node: Node, slots: Sequence[int]) -> str:
        data = next(slot for slot in range(len(node.operator.inputs)) if slot != number)
        if 0 in node.axes(node.input(number), len(node.input(data).shape)):
            return "the leading axis is one of its axes"
        return only(data)(work, node, slots)

    return rule


def _axis_option(extra: int = 0) -> Rule:
    """One axis in an option; `extra` for one that is added."""

    def rule(work: _Graph, node: Node, slots: Sequence[int]) -> str:
        first = node.axis(node.integer("axis"), len(node.input(slots[0]).shape) + extra) == 0
        return "the axis is the leading one" if first else ""

    return rule


def _squeeze(work: _Graph, node: Node, slots: Sequence[int]) -> str:
    shape, named = node.input(0).shape, node.integers("squeeze_dims")
    gone = {node.axis(axis, len(shape)) for axis in named} or {i for i, size in enumerate(shape) if size == 1}
    return "the leading axis is dropped" if 0 in gone else ""


def _expand_dims(work: _Graph, node: Node, slots: Sequence[int]) -> str:
    axis = node.numbers(node.input(1))
    before = any(node.axis(a, len(node.input(0).shape) + 1) == 0 for a in axis)
    return "the new axis is the leading one" if before else only(0)(work, node, slots)


def _transpose(work: _Graph, node: Node, slots: Sequence[int]) -> str:
    order = node.numbers(node.input(1))
    return "the leading axis is moved" if not order or order[0] != 0 else only(0)(work, node, slots)


def _pad(work: _Graph, node: Node, slots: Sequence[int]) -> str:
    widths = node.numbers(node.input(1))
    return "the leading axis is padded" if any(widths[:2]) else only(0)(work, node, slots)


def _tile(work: _Graph, node: Node, slots: Sequence[int]) -> str:
    times = node.numbers(node.input(1))
    return "the leading axis is repeated" if not times or times[0] != 1 else only(0)(work, node, slots)


def _slice(work: _Graph, node: Node, slots: Sequence[int]) -> str:
    begin, sizes, shape = node.numbers(node.input(1)), node.numbers(node.input(2)), node.input(0).shape
    if not begin or not sizes or begin[0] != 0 or sizes[0] not in (-1, shape[0]):
        return "a part of the leading axis is taken"
    work.constant(node, 2, [-1, *sizes[1:]])
    return only(0)(work, node, slots)


def _strided_slice(work: _Graph, node: Node, slots: Sequence[int]) -> str:
    begin, end, strides = (node.numbers(node.input(slot)) for slot in (1, 2, 3))
    size, masks = node.input(0).shape[0], [node.integer(f"{name}_mask") & 1 for name in ("begin", "end", "shrink_axis")]
    if not begin or not end or not strides:
        return ""
    if (node.integer("ellipsis_mask") | node.integer("new_axis_mask")) & 1:
        return "an ellipsis or a new axis stands at the leading one"
    first, last = (0 if masks[0] else begin[0]), (size if masks[1] else end[0])
    if masks[2] or strides[0] != 1 or first not in (0, -size) or last < size:
        return "a part of the leading axis is taken"
    work.constant(node, 1, [0, *begin[1:]])
    work.constant(node, 2, [work.rows(size), *end[1:]])
    return only(0)(work, node, slots)


def _gather(work: _Graph, node: Node, slots: Sequence[int]) -> str:
    axis = node.axis(node.integer("axis"), len(node.input(0).shape))
    if node.integer("batch_dims"):
        return "" if list(slots) == [0, 1] and axis > 0 else "its batch dimensions count images"
    if list(slots) == [0]:
        return "the axis is the leading one" if axis == 0 else ""
    return "" if list(slots) == [1] and axis == 0 else "data and indices depend on the inputs"


def _gather_nd(work: _Graph, node: Node, slots: Sequence[int]) -> str:
    apart = list(slots) == [1] and len(node.input(1).shape) > 1
    return "" if apart else "its indices count images"


def _batch_matmul(work: _Graph, node: Node, slots: Sequence[int]) -> str:
    ranks = [len(node.input(slot).shape) for slot in (0, 1)]
    return "" if all(ranks[slot] == max(ranks) >= 3 for slot in slots) else "its operands have different ranks"


def _sequence(*known: int) -> Rule:
    """A recurrent layer: its data and states."""

    def rule(work: _Graph, node: Node, slots: Sequence[int]) -> str:
        return "the leading axis is time" if node.flag("time_major") else only(*known)(work, node, slots)

    return rule


RULES: dict[str, Rule] = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D"), only(0)),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D", "DEPTH_TO_SPACE", "SPACE_TO_DEPTH"), only(0)),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), only(0)),
    **dict.fromkeys(("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION"), _last_axis),
    **dict.fromkeys(("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "ARG_MAX", "ARG_MIN"), _axes_input(1)),
    **dict.fromkeys(("REDUCE_ALL", "REDUCE_ANY", "REVERSE_V2"), _axes_input(1)),
    **dict.fromkeys(("PAD", "PADV2", "MIRROR_PAD"), _pad),
    **dict.fromkeys(("CONCATENATION", "UNPACK"), _axis_option()),
    **dict.fromkeys(("READ_VARIABLE", "ASSIGN_VARIABLE"), only(0, 1)),
    "TRANSPOSE_CONV": _transposed_convolution,
    "FULLY_CONNECTED": _dense,
    "RESHAPE": _reshape,
    "SQUEEZE": _squeeze,
    "EXPAND_DIMS": _expand_dims,
    "TRANSPOSE": _transpose,
    "TILE": _tile,
    "PACK": _axis_option(1),
    "SPLIT": _axes_input(0),
    "SPLIT_V": _axes_input(2),
    "SLICE": _slice,
    "STRIDED_SLICE": _strided_slice,
    "GATHER": _gather,
    "GATHER_ND": _gather_nd,
    "EMBEDDING_LOOKUP": only(0),
    "BATCH_MATMUL": _batch_matmul,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _sequence(0, 18, 19),
    "BIDIRECTIONAL_SEQUENCE_LSTM": _sequence(0, 35, 36, 37, 38),
    "UNIDIRECTIONAL_SEQUENCE_RNN": _sequence(0, 4),
    "BIDIRECTIONAL_SEQUENCE_RNN": _sequence(0, 4, 8),
    "LSTM": only(0, 18, 19),
    "RNN": only(0, 4),
    "SVDF": only(0, 4),
}
