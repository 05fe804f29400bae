"""Creates the library's primitive for a step of a program, with its attributes and arguments."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Array as Numbers
from ctypes import c_float, c_int, c_int64, c_void_p
from dataclasses import dataclass

import numpy as np

from relay.byoc.onednn.library import (
    ALGORITHMS,
    ARGUMENTS,
    BIAS,
    DESTINATION,
    DIRECT,
    INFERENCE,
    MULTIPLE,
    SCALES,
    SOURCE,
    WEIGHTS,
    WEIGHTS_QUERY,
    ZERO_POINTS,
    Argument,
    Dims,
    Library,
)
from relay.byoc.onednn.program import Array, Scaling, Step, Tensor


class Memories:
    """The library's memory objects by tensor; those of a buffer can be moved to another address."""

    def __init__(self, library: Library, addresses: Sequence[int]) -> None:
        self.library = library
        self.addresses = list(addresses)
        self.kept: list[Array] = []
        self._made: dict[Tensor, c_void_p] = {}
        self._of_buffer: dict[int, list[tuple[c_void_p, int]]] = {}

    def description(self, tensor: Tensor) -> c_void_p:
        return self.library.description(tensor.shape, tensor.dtype, tensor.strides)

    def of(self, tensor: Tensor) -> c_void_p:
        if tensor not in self._made:
            offset = tensor.offset * np.dtype(tensor.dtype).itemsize
            memory = self.library.memory(self.description(tensor), self.addresses[tensor.buffer] + offset)
            self._made[tensor] = memory
            self._of_buffer.setdefault(tensor.buffer, []).append((memory, offset))
        return self._made[tensor]

    def array(self, array: Array) -> c_void_p:
        """A memory object for an array, which is kept alive."""
        self.kept.append(np.require(array, requirements=["C"]))
        whole = Tensor.whole(0, array.shape, array.dtype.name)
        return self.library.memory(self.description(whole), self.kept[-1].ctypes.data)

    def move(self, buffer: int, address: int) -> None:
        """Move the memory objects of a buffer to another address."""
        if self.addresses[buffer] != address:
            self.addresses[buffer] = address
            for memory, offset in self._of_buffer.get(buffer, ()):
                self.library.call("memory_set_data_handle", memory, c_void_p(address + offset))


@dataclass(frozen=True, eq=False)
class Primitive:
    """A primitive with its arguments, ready to be executed."""

    handle: c_void_p
    count: int
    arguments: object


FORWARD = ("convolution", "eltwise", "pooling", "softmax", "resampling")
"""The kinds of primitives that exist for inference and for training."""


def describe(library: Library, memories: Memories, step: Step, attributes: c_void_p) -> c_void_p:
    """Create the description of a step's primitive."""
    sources, result = [memories.description(tensor) for tensor in step.sources], memories.description(step.result)
    engine, inference = library.engine, c_int(INFERENCE)
    algorithm = c_int(ALGORITHMS[step.algorithm] if step.algorithm else 0)
    weights = step.weights and library.description(step.weights.shape, step.weights.dtype, None)
    bias = c_void_p() if step.bias is None else memories.description(step.bias)
    options = step.options

    def dims(*names: str) -> list[Numbers[c_int64]]:
        return [Dims(*options[name]) for name in names]

    match step.kind:
        case "convolution" | "matmul" if weights is None:
            raise KeyError("weights")
        case "convolution":
            ends = dims("strides", "dilations", "before", "after")
            given = (engine, inference, c_int(DIRECT), *sources, weights, bias, result, *ends)
        case "matmul":
            given = (engine, *sources, weights, bias, result)
        case "binary":
            given = (engine, algorithm, *sources, result)
        case "eltwise":
            numbers = c_float(options["alpha"]), c_float(options["beta"])
            given = (engine, inference, algorithm, *sources, result, *numbers)
        case "pooling":
            ends = dims("strides", "kernel", "dilations", "before", "after")
            given = (engine, inference, algorithm, *sources, result, *ends)
        case "softmax":
            given = (engine, inference, algorithm, *sources, result, c_int(len(step.result.shape) - 1))
        case "reduction":
            given = (engine, algorithm, *sources, result, c_float(0), c_float(0))
        case "resampling":
            given = (engine, inference, algorithm, c_void_p(), *sources, result)
        case "reorder":
            given = (*sources, engine, result, engine)
        case "concat":
            array = (c_void_p * len(sources))(*sources)
            given = (engine, result, c_int(len(sources)), c_int(options["axis"]), array)
        case _:
            raise KeyError(step.kind)
    name = f"{step.kind}_forward" if step.kind in FORWARD else step.kind
    return library.make(f"{name}_primitive_desc_create", *given, attributes)


def mask(scaling: Scaling) -> int:
    """The mask of a scale: a bit for each axis along which it varies."""
    return 0 if len(scaling.scale) == 1 else sum(1 << axis for axis in scaling.axes)


def build(library: Library, memories: Memories, step: Step) -> Primitive:
    """Create the primitive of a step; constant weights are reordered to the memory format that the primitive
    prefers."""
    scales = [(ARGUMENTS[name], mask(scaling)) for name, scaling in step.scalings.items()]
    zero_points = [ARGUMENTS[name] for name, scaling in step.scalings.items() if scaling.zero_point]
    description = describe(library, memories, step, library.attributes(scales, zero_points, step.post))
    arguments = [(DESTINATION, memories.of(step.result))]
    if step.kind == "concat":
        arguments += [(MULTIPLE + number, memories.of(tensor)) for number, tensor in enumerate(step.sources)]
    else:
        arguments += [(SOURCE + number, memories.of(tensor)) for number, tensor in enumerate(step.sources)]
    if step.weights is not None:
        arguments.append((WEIGHTS, weights_of(library, memories, description, step.weights)))
    if step.bias is not None:
        arguments.append((BIAS, memories.of(step.bias)))
    for name, scaling in step.scalings.items():
        arguments.append((SCALES | ARGUMENTS[name], memories.array(np.array(scaling.scale, np.float32))))
        if scaling.zero_point:
            zero_point = memories.array(np.array([scaling.zero_point], np.int32))
            arguments.append((ZERO_POINTS | ARGUMENTS[name], zero_point))
    rows = (Argument * len(arguments))(*(Argument(number, memory) for number, memory in arguments))
    return Primitive(library.make("primitive_create", description), len(arguments), rows)


def weights_of(library: Library, memories: Memories, description: c_void_p, weights: Tensor) -> c_void_p:
    """The weights, reordered to the primitive's preferred format."""
    query = library.library.dnnl_primitive_desc_query_md
    wanted = c_void_p(query(description, c_int(WEIGHTS_QUERY), c_int(0)))
    size = int(library.library.dnnl_memory_desc_get_size(wanted))
    packed = np.zeros(size + 64, np.uint8)
    memories.kept.append(packed)
    target = library.memory(wanted, packed.ctypes.data + -packed.ctypes.data % 64)
    engine, source = library.engine, memories.of(weights)
    empty = library.make("primitive_attr_create")
    move = library.make("reorder_primitive_desc_create", memories.description(weights), engine, wanted, engine, empty)
    rows = (Argument * 2)(Argument(SOURCE, source), Argument(DESTINATION, target))
    library.execute(library.make("primitive_create", move), 2, rows)
    library.wait()
    return target
