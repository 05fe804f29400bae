"""Models of one operator, written with LiteRT's own schema classes, and LiteRT's reference kernels to run them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Scales = float | Sequence[float]


def schema() -> Any:
    """The schema module, which has no types."""
    return importlib.import_module("ai_edge_litert.schema_py_generated")


def pack(model: Any) -> bytes:
    """The file of a `ModelT`."""
    builder: Any = importlib.import_module("flatbuffers").Builder(1 << 12)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def flexbuffer(**numbers: float) -> bytes:
    """The map of these numbers and booleans, written by Google's package: options of custom operators."""
    builder: Any = importlib.import_module("flatbuffers.flexbuffers").Builder()
    with builder.Map():
        for name, number in numbers.items():
            kind = "Bool" if isinstance(number, bool) else "Int" if isinstance(number, int) else "Float"
            getattr(builder, kind)(name, number)
    return bytes(builder.Finish())


@dataclass
class T:
    """A tensor: a constant where `value` is an array, else an input or output of that shape."""

    value: Array | Sequence[int]
    dtype: str
    scale: Scales | None = None
    zero_point: int = 0
    axis: int = 0
    variable: bool = False
    blocks: Mapping[str, T | int] = field(default_factory=dict[str, "T | int"])
    """Fields of BlockwiseQuantization, if there are any: numbers, and constants of which the file has the indices."""


@dataclass
class Case:
    """One operator. An input that is None is left out."""

    kind: str
    inputs: Sequence[T | None]
    outputs: Sequence[T]
    options: str = ""
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    version: int = 1
    intermediates: Sequence[T] = ()
    custom_inputs: Mapping[int, Array] = field(default_factory=dict[int, Array])
    """Numbers for an input, by position, where random ones would not do."""
    custom_code: str = ""
    custom_options: bytes = b""
    kernels: str = "BUILTIN_REF"
    """Whose numbers hold: those of LiteRT's reference kernels, unless they are wrong."""

    def model(self) -> bytes:
        """The file."""
        return joined([self])

    def enter(self, model: Any, graph: Any) -> None:
        """Add the operator, and what it reads and makes, to a model."""
        s = schema()
        op, code = s.OperatorT(), s.OperatorCodeT()
        code.builtinCode = getattr(s.BuiltinOperator, self.kind)
        code.customCode = self.custom_code.encode() or None
        code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), self.version
        slots: list[int] = []
        op.opcodeIndex, op.inputs, op.outputs = len(model.operatorCodes), slots, []
        model.operatorCodes.append(code)
        graph.operators.append(op)
        for spec in self.inputs:
            slots.append(-1 if spec is None else self.add(model, graph, spec, f"in{len(slots)}"))
            if spec is not None and not isinstance(spec.value, np.ndarray) and not spec.variable:
                graph.inputs.append(slots[-1])
        op.outputs = [self.add(model, graph, spec, f"out{i}") for i, spec in enumerate(self.outputs)]
        graph.outputs += op.outputs
        if self.intermediates:
            op.intermediates = [self.add(model, graph, t, f"mid{i}") for i, t in enumerate(self.intermediates)]
        if self.custom_options:
            op.customOptions = np.frombuffer(self.custom_options, np.uint8)
        if self.options:
            op.builtinOptionsType = getattr(s.BuiltinOptions, self.options)
            op.builtinOptions = getattr(s, f"{self.options}T")()
            for name, value in self.values.items():
                assert hasattr(op.builtinOptions, name), name
                setattr(op.builtinOptions, name, value)

    @staticmethod
    def add(model: Any, graph: Any, spec: T, name: str) -> int:
        s = schema()
        tensor = s.TensorT()
        tensor.name, tensor.isVariable, tensor.buffer = name.encode(), spec.variable, 0
        tensor.type = getattr(s.TensorType, spec.dtype.upper())
        if isinstance(spec.value, np.ndarray):
            buffer = s.BufferT()
            buffer.data = np.frombuffer(stored(spec.value, spec.dtype), np.uint8)
            model.buffers.append(buffer)
            tensor.shape, tensor.buffer = list(spec.value.shape), len(model.buffers) - 1
        else:
            tensor.shape = [int(d) for d in spec.value]
        if spec.scale is not None:
            quantization = s.QuantizationParametersT()
            quantization.scale = [float(v) for v in np.atleast_1d(spec.scale)]
            quantization.zeroPoint = [spec.zero_point] * len(quantization.scale)
            quantization.quantizedDimension = spec.axis
            tensor.quantization = quantization
        if spec.blocks:
            details, tensor.quantization = s.BlockwiseQuantizationT(), s.QuantizationParametersT()
            for key, value in spec.blocks.items():
                given = Case.add(model, graph, value, f"{name}_{key}") if isinstance(value, T) else value
                setattr(details, key, given)
            tensor.quantization.detailsType = s.QuantizationDetails.BlockwiseQuantization
            tensor.quantization.details = details
        graph.tensors.append(tensor)
        return len(graph.tensors) - 1

    def feeds(self, rng: np.random.Generator) -> list[Array]:
        """Numbers for the inputs of the graph."""
        return [
            self.custom_inputs.get(i, random_numbers(rng, spec.value, spec.dtype))
            for i, spec in enumerate(self.inputs)
            if spec is not None and not isinstance(spec.value, np.ndarray) and not spec.variable
        ]


def joined(cases: Sequence[Case]) -> bytes:
    """The file of a model in which these operators stand side by side; its inputs, outputs and variables are theirs,
    one operator's after another's."""
    s = schema()
    model, graph = s.ModelT(), s.SubGraphT()
    tensors: list[Any] = []
    graph.name, graph.tensors, graph.operators, graph.inputs, graph.outputs = b"main", tensors, [], [], []
    model.version, model.description, model.buffers, model.operatorCodes = 3, b"case", [s.BufferT()], []
    model.subgraphs, model.metadata, model.signatureDefs = [graph], [], []
    for number, case in enumerate(cases):
        first = len(tensors)
        case.enter(model, graph)
        for tensor in tensors[first:] if number else ():
            tensor.name += f"_{number}".encode()
    return pack(model)


def stored(value: Array, dtype: str) -> bytes:
    """The bytes of a constant; of 4 and 2 bits several numbers to a byte, the first in the lowest bits."""
    if dtype not in ("int4", "int2"):
        return np.ascontiguousarray(value.astype(dtype)).tobytes()
    bits, flat = int(dtype[-1]), value.reshape(-1).astype(np.uint8)
    groups = np.append(flat, np.zeros(-flat.size % (8 // bits), np.uint8)).reshape(-1, 8 // bits)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return np.bitwise_or.reduce((groups & np.uint8((1 << bits) - 1)) << shifts, axis=1).tobytes()


def random_numbers(rng: np.random.Generator, shape: Sequence[int], dtype: str) -> Array:
    """Codes over their whole range; floats and wide integers around zero."""
    shape = tuple(int(d) for d in shape)
    if dtype in ("float32", "float16"):
        return (rng.standard_normal(shape) * 10).astype(dtype)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype in ("int32", "int64"):
        return rng.integers(-1000, 1000, shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(int(info.min), int(info.max) + 1, shape).astype(dtype)


class Reference:
    """LiteRT with its reference (or other) kernels and no delegate, and with inputs of other shapes than the file's, if
    given. Raises RuntimeError or ValueError if it refuses."""

    def __init__(self, model: bytes, kernels: str = "BUILTIN_REF", shapes: Sequence[Sequence[int]] = ()) -> None:
        litert: Any = importlib.import_module("ai_edge_litert.interpreter")
        self._interpreter: Any = litert.Interpreter(
            model_content=model,
            experimental_op_resolver_type=getattr(litert.OpResolverType, kernels),
            num_threads=1,
        )
        for detail, shape in zip(self._interpreter.get_input_details(), shapes, strict=False):
            self._interpreter.resize_tensor_input(detail["index"], shape)
        self._interpreter.allocate_tensors()

    def run(self, feeds: Sequence[Array]) -> list[Array]:
        """The outputs; variables keep what the last run left in them."""
        interpreter = self._interpreter
        for detail, array in zip(interpreter.get_input_details(), feeds, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        return [np.array(interpreter.get_tensor(detail["index"])) for detail in interpreter.get_output_details()]
