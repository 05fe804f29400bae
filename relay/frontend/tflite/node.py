"""`Node`: one operator of a file, with checked access to its tensors, options and constants.

The functions that import operators read them only through a `Node`, so that a missing or ill-typed part of a file
becomes an error that names the operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from relay.dialects.attributes import Array
from relay.errors import Unsupported
from relay.frontend.importing.builder import Place
from relay.frontend.tflite.model import Operator, OptionValue, Quantization, Subgraph, Tensor
from relay.frontend.tflite.scales import Codes, code_bounds, is_clamp

CODES = ("INT8", "UINT8")
ALL_CODES = (*CODES, "INT16")
FLOATS = ("FLOAT32",)
INDICES = ("INT32", "INT64")
NUMBERS = ("FLOAT32", *INDICES)
_RANGES = {"INT8": (-128, 127), "UINT8": (0, 255), "INT16": (-32768, 32767)}
"""The smallest and largest quantized value of each type."""


@dataclass(frozen=True, slots=True, eq=False)
class Node(Place):
    file: str
    graph: Subgraph
    operator: Operator

    @property
    def number(self) -> int:
        return self.operator.index

    @property
    def name(self) -> str:
        """The name of the first output, by which users know an operator."""
        outputs = self.operator.outputs
        return self.graph.tensors[outputs[0]].name if outputs else ""

    @property
    def title(self) -> str:
        """The operator in errors: `operator 17 CONV_2D 'conv1'`."""
        name = self.name if len(self.name) <= 120 else f"{self.name[:117]}..."
        return f"{self.operator} {name!r}"

    def optional(self, number: int) -> Tensor | None:
        """The input with this index; None if it is omitted."""
        inputs = self.operator.inputs
        if number >= len(inputs) or inputs[number] < 0:
            return None
        return self.graph.tensors[inputs[number]]

    def input(self, number: int) -> Tensor:
        tensor = self.optional(number)
        if tensor is None:
            raise self.malformed(f"input {number} is missing")
        return tensor

    def inputs(self) -> list[Tensor]:
        return [self.input(number) for number in range(len(self.operator.inputs))]

    def output(self, number: int = 0) -> Tensor:
        if number >= len(self.operator.outputs):
            raise self.malformed(f"output {number} is missing")
        return self.graph.tensors[self.operator.outputs[number]]

    def intermediate(self, number: int) -> Tensor:
        numbers = self.operator.intermediates
        if number >= len(numbers) or numbers[number] < 0:
            raise self.malformed(f"intermediate {number} is missing")
        return self.graph.tensors[numbers[number]]

    def _option(self, name: str) -> OptionValue:
        return self.operator.options.get(name, 0)

    def integer(self, name: str) -> int:
        value = self._option(name)
        if not isinstance(value, int):
            raise self.malformed(f"the option {name} is {value!r}, not a number")
        return int(value)

    def integers(self, name: str) -> tuple[int, ...]:
        value = self._option(name)
        return value if isinstance(value, tuple) else ()

    def flag(self, name: str) -> bool:
        return bool(self._option(name))

    def real(self, name: str) -> float:
        value = self._option(name)
        if not isinstance(value, int | float) or not np.isfinite(value):
            raise self.malformed(f"the option {name} is {value!r}, not a finite number")
        return float(value)

    def word(self, name: str) -> str:
        """An enum option, by the name of its value."""
        return str(self._option(name))

    def positive(self, *names: str) -> tuple[int, ...]:
        """The values of these options of the operator, such as strides. Raises Malformed for a value below 1."""
        values = tuple(self.integer(name) for name in names)
        for name, value in zip(names, values, strict=True):
            if value < 1:
                raise self.malformed(f"the option {name} is {value}")
        return values

    def activation(self) -> str:
        """The fused activation, which must be a clamp. Raises Unsupported for others."""
        name = self.word("fused_activation_function")
        if not is_clamp(name):
            raise self.unsupported(f"the fused activation is {name}")
        return name

    def no_activation(self) -> None:
        if self.word("fused_activation_function") not in ("NONE", "0"):
            raise self.unsupported(f"the fused activation is {self.word('fused_activation_function')}")

    def code_type(self) -> str:
        """The type of the quantized values that the operator computes with; empty if it has none."""
        slots = (*self.operator.outputs, *(index for index in self.operator.inputs if index >= 0))
        tensors = [self.graph.tensors[index] for index in slots]
        found = [t.type for t in tensors if t.type in _RANGES and t.quantization is not None]
        floats = any(self.graph.tensors[index].type == "FLOAT32" for index in self.operator.outputs)
        return "" if floats and self.operator.kind != "DEQUANTIZE" else next(iter(found), "")

    def codes_of(self, types: Sequence[str]) -> bool:
        """Whether at least one input or output of the operator is quantized and has one of these element types."""
        slots = (*self.operator.inputs, *self.operator.outputs)
        tensors = [self.graph.tensors[index] for index in slots if index >= 0]
        return any(tensor.type in types and tensor.quantization is not None for tensor in tensors)

    def types(self, *tensors: Tensor | None) -> tuple[str, ...]:
        return tuple(tensor.type for tensor in tensors if tensor is not None)

    def one_type(self, types: Sequence[str], *tensors: Tensor | None) -> str:
        """The type of these tensors, by default of all inputs and the output. Raises Unsupported unless they have one
        type, which is one of `types`."""
        every = tensors or (*self.inputs(), self.output())
        found = self.types(*every)
        if found[0] not in types or len({*found}) > 1:
            raise self.refuse_types(*every)
        return found[0]

    def refuse_types(self, *tensors: Tensor | None, hint: str = "") -> Unsupported:
        """The error for a combination of tensor types that is not supported."""
        return self.unsupported(f"takes no {', '.join(self.types(*tensors))}", hint)

    def array(self, tensor: Tensor) -> Array:
        """The elements of a constant, not copied."""
        if tensor.data is None and 0 not in tensor.shape:
            raise self.unsupported(f"{tensor} is computed at run time", "it must be a constant")
        return tensor.to_numpy()

    def block_scales(self, tensor: Tensor, sizes: tuple[int, int]) -> Array:
        """The scales [row, block], float32, of the blocks in the rows of a matrix. Raises Unsupported for zero
        points."""
        (rows, columns), blocks = sizes, tensor.blocks
        assert blocks is not None
        if blocks.size < 1 or columns % blocks.size or (blocks.shape and blocks.shape[-1] != prod(blocks.shape)):
            what = f"{tensor} is quantised in blocks of {blocks.shape or blocks.size}"
            raise self.unsupported(what, "use parts of rows")
        shape = rows, columns // blocks.size
        if blocks.zero_points > 0 and self._of_blocks(blocks.zero_points, shape).any():
            raise self.unsupported(f"{tensor} has zero points", "quantise weights symmetrically")
        return self._of_blocks(blocks.scales, shape).astype(np.float32)

    def _of_blocks(self, index: int, shape: tuple[int, int]) -> Array:
        """The constant with this tensor index and shape that describes the quantization of another tensor."""
        if not 0 <= index < len(self.graph.tensors):
            raise self.malformed(f"scales of blocks are tensor {index}, but there are {len(self.graph.tensors)}")
        tensor = self.graph.tensors[index]
        if prod(tensor.shape) != prod(shape):
            raise self.malformed(f"{tensor} has shape {tensor.shape}, blocks take {shape}")
        return self.array(tensor).reshape(shape)

    def numbers(self, tensor: Tensor, types: tuple[str, ...] = INDICES) -> tuple[int, ...]:
        """The elements of a small constant such as axes or a shape."""
        if tensor.type not in types:
            raise self.unsupported(f"{tensor} is {tensor.type}, not INT32 or INT64")
        values = self.array(tensor).reshape(-1)
        if values.size > 1024:
            raise self.malformed(f"{tensor} has {values.size} numbers")
        return tuple(int(value) for value in values)

    def axes(self, tensor: Tensor, rank: int) -> tuple[int, ...]:
        """The axes that a constant tensor lists for data of rank `rank`, distinct and sorted; negative ones are counted
        from the end."""
        return tuple(sorted({self.axis(axis, rank) for axis in self.numbers(tensor)}))

    def shape(self, tensor: Tensor, rank: int) -> tuple[int, ...]:
        """The tensor's shape. Raises Malformed if it has another rank."""
        if len(tensor.shape) != rank:
            raise self.malformed(f"{tensor} has rank {len(tensor.shape)}, not {rank}")
        return tensor.shape

    def quantization(self, tensor: Tensor) -> Quantization:
        """The scales and zero points of a tensor, one or several; a scale may be 0."""
        found = tensor.quantization
        if found is None or not len(found.scale):
            raise self.malformed(f"{tensor} has no scale")
        if found.details != "NONE":
            raise self.unsupported(f"{tensor} is quantised by {found.details}")
        return found

    def codes(self, tensor: Tensor) -> Codes:
        """The single scale and zero point of a quantized tensor; the scale must not be 0."""
        found = self._codes(tensor)
        if not found.scale:
            raise self.malformed(f"{tensor} has a scale of 0")
        return found

    def _codes(self, tensor: Tensor) -> Codes:
        found = self.quantization(tensor)
        if len(found.scale) != 1:
            raise self.unsupported(
                f"{tensor} has {len(found.scale)} scales", "only weights can be quantised per channel"
            )
        if tensor.type not in _RANGES:
            raise self.unsupported(f"{tensor} of {tensor.type} is quantised")
        low, high = _RANGES[tensor.type]
        return Codes(np.float32(found.scale[0]), int(found.zero_point[0]), low, high)

    def same_codes(self, *tensors: Tensor) -> Codes | None:
        """The scale and zero point that the tensors must share; None if none of them is quantized."""
        if all(tensor.quantization is None for tensor in tensors):
            return None
        first, *others = [self._codes(tensor) for tensor in tensors]
        if any(other != first for other in others):
            raise self.unsupported("the scales and zero points of inputs and output differ")
        return first

    def bounds(self, codes: Codes, activation: str | None = None, *, to_even: bool = False) -> tuple[int, int]:
        """The range of quantized values that an activation, by default the fused one, lets through."""
        activation = activation or self.activation()
        try:
            low, high = code_bounds(activation, codes, to_even) if codes.scale or activation == "NONE" else (1, 0)
        except OverflowError:
            low, high = 1, 0
        if low > high:
            raise self.malformed(f"the output's scale {codes.scale} leaves no code to the activation")
        return low, high
