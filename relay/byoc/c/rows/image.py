"""Resizing. The positions are the interpreter's, computed when the C is written."""

from __future__ import annotations

import numpy as np

from relay.byoc.c.ctype import F32, I32, I64
from relay.byoc.c.emitter import Emitter
from relay.byoc.c.loops import wrap
from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.errors import Unsupported
from relay.interpreters.image import fixed_coordinates, float_coordinates, nearest_indices
from relay.transforms.location import place


def resize2d(e: Emitter, op: relay.Resize2dOp) -> None:
    (if_nearest if op.method.data == "nearest_neighbor" else if_linear)(e, op)


def mode(op: relay.Resize2dOp) -> tuple[bool, bool]:
    """Whether corners are aligned, and whether pixels have their centres at halves."""
    return bool(op.align_corners.value.data), bool(op.half_pixel_centers.value.data)


def if_nearest(e: Emitter, op: relay.Resize2dOp) -> None:
    (batches, height, width, channels), (_, rows, columns, _) = e.shape(op.data), e.shape(op.result)
    type = e.type(op.data)
    row = e.numbers(nearest_indices(rows, height, *mode(op)).astype(np.int32), "rows")
    column = e.numbers(nearest_indices(columns, width, *mode(op)).astype(np.int32), "columns")
    target, source = f"((i * {rows} + j) * {columns} + k)", f"((i * {height} + rows[j]) * {width} + columns[k])"
    copy = f"memcpy(output + {target} * {channels}, input + {source} * {channels}, {channels} * sizeof *output);"
    names = ["const int32_t *rows", "const int32_t *columns", f"const {type.name} *restrict input"]
    body = wrap([batches, rows, columns], copy)
    function = e.function(op.name, [*names, f"{type.name} *restrict output"], body)
    e.call(op, function, row, column, e.read(op.data), e.write(op.result))


def if_linear(e: Emitter, op: relay.Resize2dOp) -> None:
    (batches, height, width, channels), (_, rows, columns, _) = e.shape(op.data), e.shape(op.result)
    type = e.type(op.data)
    if type.kind == "b" or type.name == "double":
        raise Unsupported(place(op), f"linear resizing of {type.name} is not supported by c")
    fixed = type.kind == "i"
    total, weight = (I32 if type.size == 1 else I64, I32) if fixed else (F32, F32)
    coordinates = fixed_coordinates if fixed else float_coordinates
    struct = e.kernel("resize_shape", weight.short, Weight=weight.name)
    finish = "(total + (total > 0 ? 1 << 19 : -(1 << 19))) / (1 << 20)" if fixed else "total + 0.5f"
    function = e.kernel(
        "resize_linear",
        type.short,
        Shape=struct,
        Type=type.name,
        Sum=total.name,
        one="1 << 10" if fixed else "1.0f",
        finish="total" if type.kind == "f" else finish,
    )
    fields: dict[str, object] = {
        "batches": batches, "height": height, "width": width, "channels": channels,
        "out_height": rows, "out_width": columns,
    }  # fmt: skip
    for axis, (size, source) in {"row": (rows, height), "column": (columns, width)}.items():
        weights, lower, upper = coordinates(size, source, *mode(op))
        fields[axis] = numbers(e, lower, np.int32, axis)
        fields[f"next_{axis}"] = numbers(e, upper, np.int32, axis)
        fields[f"{axis}_weight"] = numbers(e, weights, weight.dtype.type, "weights")
    e.call(op, function, e.table(struct, "resize", fields), e.read(op.data), e.write(op.result))


def numbers(e: Emitter, array: Array, dtype: type[np.generic], name: str) -> str:
    """The pointer to one of the tables."""
    return e.numbers(array.astype(dtype), name)
