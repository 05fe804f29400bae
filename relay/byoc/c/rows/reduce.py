"""Reductions, pools and means."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from relay.byoc.c.ctype import I32, I64, CType
from relay.byoc.c.emitter import Emitter
from relay.byoc.c.loops import Access, dense, nest, row_major
from relay.byoc.c.rows.requantize import RESCALES
from relay.dialects import qnn, relay
from relay.dialects.attributes import int_values
from relay.interpreters.meaning import number


def reduced(shape: Sequence[int], axes: Sequence[int]) -> Access:
    """Where each element of the input goes in the result, whose reduced axes do not move."""
    kept = [1 if axis in axes else size for axis, size in enumerate(shape)]
    return Access(tuple(0 if axis in axes else s for axis, s in enumerate(row_major(kept))))


def fill(count: int, value: str, name: str = "output") -> str:
    """A loop that sets every element."""
    return f"    for (int32_t i = 0; i < {count}; ++i)\n        {name}[i] = {value};\n"


def sum_(e: Emitter, op: relay.SumOp) -> None:
    type = e.type(op.input)
    fold(e, op, type.literal(0), f"({type.name})(({type.wrap}){{0}} + ({type.wrap}){{1}})")


def max_(e: Emitter, op: relay.MaxOp) -> None:
    extreme(e, op, ">", 0)


def min_(e: Emitter, op: relay.MinOp) -> None:
    extreme(e, op, "<", 1)


def extreme(e: Emitter, op: relay.MaxOp | relay.MinOp, comparison: str, end: int) -> None:
    """Starts from the end of the type's range that every number beats."""
    type = e.type(op.input)
    worst = ("-INFINITY", "INFINITY") if type.kind == "f" else (type.literal(v) for v in limits(type))
    fold(e, op, tuple(worst)[end], f"({type.name})({{1}} {comparison} {{0}} ? {{1}} : {{0}})")


def limits(type: CType) -> tuple[int, int]:
    """The lowest and the highest number of an integer type."""
    return (0, 1) if type.kind == "b" else type.range


def fold(e: Emitter, op: relay.SumOp | relay.MaxOp | relay.MinOp, start: str, expression: str) -> None:
    """Every result from `start`, one number of the input after the other."""
    shape, type = e.shape(op.input), e.type(op.input)
    text = fill(prod(e.shape(op.result)), start) + nest(
        shape,
        [dense(shape), reduced(shape, op.axes())],
        lambda at: f"output[{at[1]}] = {expression.format(f'output[{at[1]}]', f'input[{at[0]}]')};",
    )
    names = [f"const {type.name} *restrict input", f"{type.name} *restrict output"]
    e.call(op, e.function(op.name, names, text), e.read(op.input), e.write(op.result))


def argmax(e: Emitter, op: relay.ArgmaxOp) -> None:
    arg(e, op, ">")


def argmin(e: Emitter, op: relay.ArgminOp) -> None:
    arg(e, op, "<")


def arg(e: Emitter, op: relay.ArgOp, comparison: str) -> None:
    """The first extreme number along one axis."""
    shape, type, index = e.shape(op.input), e.type(op.input), e.type(op.result)
    axis = op.axes()[0]
    outer, size, inner = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
    text = f"""    for (int32_t i = 0; i < {outer}; ++i) {{
        for (int32_t j = 0; j < {inner}; ++j) {{
            const {type.name} *const line = input + i * {size * inner} + j;
            int32_t best = 0;
            for (int32_t k = 1; k < {size}; ++k)
                best = line[k * {inner}] {comparison} line[best * {inner}] ? k : best;
            output[i * {inner} + j] = best;
        }}
    }}
"""
    names = [f"const {type.name} *restrict input", f"{index.name} *restrict output"]
    e.call(op, e.function(op.name, names, text), e.read(op.input), e.write(op.result))


def mean(e: Emitter, op: qnn.MeanOp) -> None:
    """Sums of steps, then one rescaling each."""
    shape, type, count = e.shape(op.input), e.type(op.input), prod(e.shape(op.result))
    zero_point, offset = number(op.input_zero_point), number(op.output_zero_point)
    low, high = type.range
    steps = prod(shape[axis] for axis in op.axes()) * max(high - zero_point, zero_point - low)
    total = I32 if steps < 1 << 31 else I64
    for kernel in ("clamp", "wrap32"):
        e.kernel(kernel)
    rescale = e.kernel(RESCALES[op.rounding.data])
    rescaled = f"{rescale}(relay_wrap32(sums[i]), {number(op.multiplier)}, {number(op.shift)})"
    text = (
        fill(count, "0", "sums")
        + nest(
            shape,
            [dense(shape), reduced(shape, op.axes())],
            lambda at: f"sums[{at[1]}] += input[{at[0]}] - {bracketed(zero_point)};",
        )
        + fill(count, f"({type.name})relay_clamp((int64_t){rescaled} + {bracketed(offset)}, {low}, {high})")
    )
    names = [f"const {type.name} *restrict input", f"{total.name} *restrict sums", f"{type.name} *restrict output"]
    e.call(op, e.function(op.name, names, text), e.read(op.input), e.scratch(total, count), e.write(op.result))


def bracketed(value: int) -> str:
    """A number that an operator may precede."""
    return f"({value})" if value < 0 else str(value)


def max_pool2d(e: Emitter, op: relay.MaxPool2dOp) -> None:
    type = e.type(op.data)
    function = e.kernel("max_pool2d", type.short, Type=type.name)
    e.call(op, function, pool_table(e, op), e.read(op.data), e.write(op.result))


def avg_pool2d(e: Emitter, op: relay.AvgPool2dOp) -> None:
    type, cells = e.type(op.data), prod(int_values(op.pool_size))
    total = type if type.kind == "f" else I32 if cells << 8 * type.size < 1 << 31 else I64
    rounded = "(sums[c] + (sums[c] > 0 ? count / 2 : -(count / 2))) / count"
    value = "sums[c] / count" if type.kind == "f" else rounded
    suffix = type.short + ("_wide" if total == I64 else "")
    function = e.kernel("avg_pool2d", suffix, Type=type.name, Sum=total.name, mean=value)
    sums = e.scratch(total, e.shape(op.data)[3])
    e.call(op, function, pool_table(e, op), e.read(op.data), sums, e.write(op.result))


def pool_table(e: Emitter, op: relay.Pool2dOp) -> str:
    """The fields of `relay_pool_shape`."""
    (batches, height, width, channels), (_, out_height, out_width, _) = e.shape(op.data), e.shape(op.result)
    (pool_height, pool_width), (stride_y, stride_x) = int_values(op.pool_size), int_values(op.strides)
    pad_top, pad_left = int_values(op.padding)[:2]
    fields = {
        "batches": batches, "height": height, "width": width, "channels": channels,
        "out_height": out_height, "out_width": out_width, "pool_height": pool_height, "pool_width": pool_width,
        "stride_y": stride_y, "stride_x": stride_x, "pad_top": pad_top, "pad_left": pad_left,
    }  # fmt: skip
    return e.table("relay_pool_shape", "pool", fields)
