"""An ONNX model under construction: the values of a region by name and layout, and the nodes between them.

Images are NHWC in relay and NCHW in ONNX. A value of rank 4 may be there in either layout or in both: a transposition
is inserted when a node needs the missing layout, at most once for each value.

int8 values are uint8 in the model, 128 higher, and so are their zero points: ONNX Runtime multiplies int8 with int8
many times slower than uint8 with int8 on x86. Only the model's own inputs and outputs are int8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
from xdsl.ir import SSAValue

from relay.byoc.quantized import Codes, dtype
from relay.byoc.regions import Region, constant_of
from relay.byoc.scales import find_scales
from relay.dialects.attributes import Array
from relay.dialects.op import shape
from relay.errors import Unsupported

CONTRIB = "com.microsoft"
"""The domain of ONNX Runtime's own operators, among them operators on quantized values that ONNX itself lacks."""
OPSET, IR_VERSION = 18, 9
TO_FIRST, TO_LAST = (0, 3, 1, 2), (0, 2, 3, 1)
MOST_BYTES = (1 << 31) - 1


INT8 = np.dtype(np.int8)
SIGN = 128


def stored(type: np.dtype[Any]) -> np.dtype[Any]:
    """The type that tensors of this type have in the model: uint8 for int8."""
    return np.dtype(np.uint8) if type == INT8 else type


def moved(array: Array) -> Array:
    """An array as the model stores it: int8 as uint8, increased by 128."""
    return (array.astype(np.int16) + SIGN).astype(np.uint8) if array.dtype == INT8 else array


class Graph:
    """Builds the ONNX model of one region. In all methods `first` says that a value has its channels first (NCHW)."""

    def __init__(self, region: Region, unsigned_weights: bool = False) -> None:
        self.region = region
        self.weights = np.dtype(np.uint8) if unsigned_weights else INT8
        """The type of the quantized kernels of products."""
        self.scales = find_scales(region)
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []
        self._shared: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._names: dict[tuple[SSAValue, bool], str] = {}
        self._count = 0
        self._inputs = [self._input(index, value) for index, value in enumerate(region.inputs)]

    def _input(self, index: int, value: SSAValue) -> ValueInfoProto:
        name = f"in{index}"
        self._names[value, False] = self.unsigned(name) if dtype(value) == INT8 else name
        return self._info(name, value)

    def _info(self, name: str, value: SSAValue) -> ValueInfoProto:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype(value)), shape(value))

    @property
    def listing(self) -> str:
        """The nodes as text, one per line: result = Kind operands attributes."""
        lines: list[str] = []
        for node in self._nodes:
            attributes = "".join(f" {a.name}={helper.get_attribute_value(a)}" for a in node.attribute)
            lines.append(f"{', '.join(node.output)} = {node.op_type} {', '.join(node.input)}{attributes}\n")
        return "".join(lines)

    def finish(self) -> bytes:
        """The model's bytes. Raises Unsupported if they exceed 2 GiB, the limit of protocol buffers."""
        outputs: list[ValueInfoProto] = []
        for index, value in enumerate(self.region.outputs):
            name = self.signed(self.read(value)) if dtype(value) == INT8 else self.read(value)
            self._nodes.append(helper.make_node("Identity", [name], [f"out{index}"]))
            outputs.append(self._info(f"out{index}", value))
        graph = helper.make_graph(self._nodes, self.region.name, self._inputs, outputs, self._constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
        model: ModelProto = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="relay")
        if model.ByteSize() > MOST_BYTES:
            raise Unsupported(self.region.name, "has more than 2 GiB of weights", "leave some to the host")
        return model.SerializeToString()

    def node(self, kind: str, inputs: Sequence[str], domain: str = "", **attributes: Any) -> str:
        """Append a node with one output, and return the output's name. The name of an absent input is ""."""
        name = self._fresh(kind)
        self._nodes.append(helper.make_node(kind, list(inputs), [name], name=f"n_{name}", domain=domain, **attributes))
        return name

    def _fresh(self, hint: str) -> str:
        self._count += 1
        return f"{hint}_{self._count}"

    def constant(self, value: npt.ArrayLike, type: np.dtype[Any] | None = None) -> str:
        """The name of a constant; small equal constants are shared."""
        array = np.asarray(value, type)
        key = array.dtype.str, array.shape, array.tobytes() if array.nbytes <= 1024 else b""
        if array.nbytes > 1024 or key not in self._shared:
            name = self._fresh("constant")
            self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
            if array.nbytes > 1024:
                return name
            self._shared[key] = name
        return self._shared[key]

    def number(self, value: npt.ArrayLike, type: np.dtype[Any]) -> str:
        """Return the name of a constant with this value. `type` is its type in the IR; the model stores int8 values as
        uint8, increased by 128."""
        return self.constant(moved(np.asarray(value, type)))

    def unsigned(self, name: str) -> str:
        """Append nodes that convert an int8 tensor to the model's uint8 form, by flipping the highest bit."""
        bits = self.node("Cast", [name], to=TensorProto.UINT8)
        return self.node("BitwiseXor", [bits, self.constant(np.uint8(SIGN))])

    def signed(self, name: str) -> str:
        """Append nodes that convert a uint8 tensor, the form that this model gives to int8 data, back to int8; return
        the result's name."""
        bits = self.node("BitwiseXor", [name, self.constant(np.uint8(SIGN))])
        return self.node("Cast", [bits], to=TensorProto.INT8)

    def integers(self, values: Sequence[int]) -> str:
        """The name of an int64 constant, such as axes or a shape."""
        return self.constant(np.array(values, np.int64))

    def quantization(self, codes: Codes, type: np.dtype[Any]) -> tuple[str, str]:
        """The names of the scale and the zero point for tensors of this type."""
        return self.constant(np.float32(codes.scale)), self.number(codes.zero_point, type)

    def is_first(self, value: SSAValue) -> bool:
        """Whether the value is available with its channels first."""
        return (self.region.of(value), True) in self._names

    def define(self, value: SSAValue, name: str, first: bool = False) -> None:
        self._names[self.region.of(value), first] = name

    def read(self, value: SSAValue, first: bool = False) -> str:
        """The name of an operand, in NCHW if `first`, else in NHWC. A transposition is added to the graph if the
        operand is only known in the other layout."""
        value = self.region.of(value)
        key = value, first
        if key not in self._names:
            array = constant_of(value)
            if array is not None:
                self._names[key] = self.constant(moved(array.transpose(TO_FIRST) if first else array))
            else:
                self._names[key] = self._transposed(value, first)
        return self._names[key]

    def _transposed(self, value: SSAValue, first: bool) -> str:
        """Append a node that transposes an image to have channels first, or last unless `first`, and return the name of
        its result. If the image has one pixel or one channel, a reshape does the same."""
        name, dims = self._names[value, not first], shape(value)
        axes = TO_FIRST if first else TO_LAST
        if dims[3] == 1 or dims[1] * dims[2] == 1:
            wanted = [dims[axis] for axis in TO_FIRST] if first else list(dims)
            return self.node("Reshape", [name, self.integers(wanted)])
        return self.node("Transpose", [name], perm=axes)

    def broadcast(self, value: SSAValue, rank: int, first: bool) -> str:
        """The name of an operand that broadcasts to this rank, in NCHW if `first`, else in NHWC. Raises Unsupported for
        a computed operand of lower rank in NCHW."""
        array = constant_of(value)
        if not first or len(shape(value)) == 4:
            return self.read(value, first)
        if array is None:
            raise Unsupported(self.region.name, "a tensor of lower rank is broadcast along channels")
        if array.size == 1:
            return self.constant(moved(array.reshape(())))
        return self.constant(moved(array.reshape((1,) * (rank - array.ndim) + array.shape).transpose(TO_FIRST)))

    def layout(self, *values: SSAValue) -> bool:
        """Whether an elementwise op on these values is computed with channels first: if an operand is available in that
        layout, and all computed operands are images."""
        computed = [value for value in values if constant_of(value) is None]
        return any(map(self.is_first, computed)) and all(len(shape(value)) == 4 for value in computed)
