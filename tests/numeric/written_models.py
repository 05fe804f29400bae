"""Models of one operator written with relay's own writer, for where LiteRT's schema classes are not installed."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from relay.frontend.tflite import schema
from tests.numeric.flatbuffer import Table, Value, serialize
from tests.numeric.litert_models import Case, T, stored


def written(case: Case) -> bytes:
    """The file that `case.model()` is, byte order and absent defaults aside."""
    buffers, tensors, inputs = [Table(schema.BUFFER)], list[Table](), list[int]()

    def add(spec: T | None, name: str) -> int:
        if spec is None:
            return -1
        tensors.append(_tensor(spec, name, buffers))
        return len(tensors) - 1

    slots = [add(spec, f"in{number}") for number, spec in enumerate(case.inputs)]
    for slot, spec in zip(slots, case.inputs, strict=True):
        inputs += [slot] if spec is not None and not isinstance(spec.value, np.ndarray) and not spec.variable else []
    outputs = [add(spec, f"out{number}") for number, spec in enumerate(case.outputs)]
    operator: dict[str, Value] = {"inputs": _numbers(slots), "outputs": _numbers(outputs)}
    if case.intermediates:
        operator["intermediates"] = _numbers([add(t, f"mid{number}") for number, t in enumerate(case.intermediates)])
    if case.options and (row := schema.OPTIONS.get(case.kind)) is not None:
        named = {re.sub("[A-Z]", lambda upper: f"_{upper[0].lower()}", name): v for name, v in case.values.items()}
        values = {
            name: np.array(value, row.fields[name].of) if row.fields[name].kind == "vector" else value
            for name, value in named.items()
        }
        operator |= {"builtin_options_type": row.member, "builtin_options": Table(row.fields, values)}
    number = schema.BUILTIN_OPERATORS.index(case.kind)
    code = {"deprecated_builtin_code": min(number, 127), "builtin_code": number, "version": case.version}
    graph: dict[str, Value] = {
        "tensors": tensors,
        "inputs": _numbers(inputs),
        "outputs": _numbers(outputs),
        "operators": [Table(schema.OPERATOR, operator)],
        "name": "main",
    }
    model: dict[str, Value] = {
        "version": 3,
        "operator_codes": [Table(schema.OPERATOR_CODE, code)],
        "subgraphs": [Table(schema.SUBGRAPH, graph)],
        "description": "case",
        "buffers": buffers,
    }
    return serialize(Table(schema.MODEL, model), b"TFL3")


def _numbers(values: Sequence[int]) -> Value:
    return np.array(values, np.int32)


def _tensor(spec: T, name: str, buffers: list[Table]) -> Table:
    """A tensor; the numbers of a constant are a buffer more."""
    values: dict[str, Value] = {
        "name": name,
        "type": schema.TENSOR_TYPE_NAMES.index(spec.dtype.upper()),
        "is_variable": spec.variable,
        "shape": _numbers([int(d) for d in np.shape(spec.value)] if isinstance(spec.value, np.ndarray) else spec.value),
    }
    if isinstance(spec.value, np.ndarray):
        buffers.append(Table(schema.BUFFER, {"data": np.frombuffer(stored(spec.value, spec.dtype), np.uint8)}))
        values["buffer"] = len(buffers) - 1
    if spec.scale is not None:
        scales = np.atleast_1d(np.array(spec.scale, np.float32))
        points = np.full(scales.size, spec.zero_point, np.int64)
        given: dict[str, Value] = {"scale": scales, "zero_point": points, "quantized_dimension": spec.axis}
        values["quantization"] = Table(schema.QUANTIZATION, given)
    return Table(schema.TENSOR, values)
