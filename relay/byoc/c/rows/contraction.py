"""Convolutions and matrix products, with what a pattern put behind them: a bias, and how sums become results."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue

from relay.byoc.c.ctype import I16, I32, I64, CType
from relay.byoc.c.emitter import Emitter
from relay.byoc.c.rows import requantize
from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, int_values, to_numpy
from relay.errors import Unsupported
from relay.module import is_constant
from relay.transforms.location import place

Contraction = relay.Conv2dOp | qnn.Conv2dOp | relay.DenseOp | qnn.DenseOp
Epilogue = qnn.RequantizeOp | relay.ClipOp | relay.MaximumOp | None


@dataclass(frozen=True, slots=True)
class Types:
    """The C types of one contraction."""

    input: CType
    weight: CType
    patch: CType
    product: CType
    sum: CType
    zero: str
    """Of zero points: `float` where there are none."""


def conv2d(e: Emitter, op: relay.Conv2dOp | qnn.Conv2dOp) -> None:
    contract(e, op, None, None)


def dense(e: Emitter, op: relay.DenseOp | qnn.DenseOp) -> None:
    contract(e, op, None, None)


def contract(e: Emitter, op: Contraction, bias_add: relay.BiasAddOp | None, epilogue: Epilogue) -> None:
    """One call for a convolution or product, an optional bias, and an optional epilogue."""
    ops = [each for each in (op, bias_add, epilogue) if each is not None]
    types = types_of(e, op)
    result = ops[-1].results[0]
    finish, struct, table = epilogue_of(e, op.result, epilogue)
    parameters = {
        "Input": types.input.name,
        "Weight": types.weight.name,
        "Patch": types.patch.name,
        "Sum": types.sum.name,
        "Wrap": types.sum.wrap,
        "Product": types.product.name,
        "Zero": types.zero,
        "Output": e.type(result).name,
        "Finish": struct,
        "finish": finish,
    }
    wide = ["wide"] * (types.product != types.sum)
    operands = [types.weight.short, types.sum.short, *wide]
    finished = [types.weight.short, *wide, finish.removeprefix("relay_")]
    shape = e.table("relay_conv2d_shape", "shape", shape_of(e, op))
    bias = "NULL" if bias_add is None else e.read(bias_add.bias)
    arguments = [shape, e.read(op.data), e.read(op.kernel), bias, table]
    sums = e.scratch(types.sum, e.shape(op.result)[-1])
    if isinstance(op, relay.Conv2dBase) and op.depthwise:
        parameters["tap"] = e.kernel("tap", "_".join([types.input.short, *operands]), **parameters)
        function = e.kernel("depthwise_conv2d", "_".join([types.input.short, *finished]), **parameters)
        e.call(ops, function, *arguments, sums, e.write(result))
        return
    parameters["patch"] = e.kernel("patch", f"{types.input.short}_{types.patch.short}", **parameters)
    parameters["dot"] = e.kernel("dot", "_".join([types.patch.short, *operands]), **parameters)
    wide_patch = [types.patch.short] * (types.patch == I32)
    function = e.kernel("conv2d", "_".join([types.input.short, *wide_patch, *finished]), **parameters)
    patch = e.scratch(types.patch, int(np.prod(e.shape(op.kernel)[1:])))
    e.call(ops, function, *arguments, patch, sums, e.write(result))


def zero_point(op: Contraction, name: str) -> int:
    """A zero point of the op; 0 where it has none."""
    attr = op.properties.get(name)
    return 0 if attr is None else int(to_numpy(attr))


def types_of(e: Emitter, op: Contraction) -> Types:
    """Patches hold numbers less their zero point: 16 bits where that is enough."""
    data, weight, total = e.type(op.data), e.type(op.kernel), e.type(op.result)
    if data.kind == "f":
        return Types(data, weight, data, data, total, data.name)
    low, high = (code - zero_point(op, "input_zero_point") for code in data.range)
    centred = (code - zero_point(op, "kernel_zero_point") for code in weight.range)
    largest = max(-low, high)
    patch = I16 if largest < 1 << 15 else I32
    wide = largest * max(map(abs, (*weight.range, *centred))) >= 1 << 31
    return Types(data, weight, patch, I64 if wide or total == I64 else I32, total, "int32_t")


def shape_of(e: Emitter, op: Contraction) -> dict[str, object]:
    """The fields of `relay_conv2d_shape`; a product is a convolution of 1x1 images."""
    zero_points = {name: zero_point(op, name) for name in ("input_zero_point", "kernel_zero_point")}
    if isinstance(op, relay.DenseOp | qnn.DenseOp):
        *rows, inputs = e.shape(op.data)
        ones = ("height", "width", "out_height", "out_width", "kernel_height", "kernel_width", "stride_y", "stride_x")
        return {
            "batches": int(np.prod(rows)),
            "channels": inputs,
            "out_channels": e.shape(op.kernel)[0],
            **dict.fromkeys((*ones, "dilation_y", "dilation_x", "groups"), 1),
            **zero_points,
        }
    (batches, height, width, channels), (_, out_height, out_width, out) = e.shape(op.data), e.shape(op.result)
    kernel = e.shape(op.kernel)
    fields: dict[str, object] = {
        "batches": batches, "height": height, "width": width, "channels": channels,
        "out_height": out_height, "out_width": out_width, "out_channels": out,
    }  # fmt: skip
    fields["kernel_height"], fields["kernel_width"] = kernel[:2] if op.depthwise else kernel[1:3]
    fields["stride_y"], fields["stride_x"] = int_values(op.strides)
    fields["dilation_y"], fields["dilation_x"] = int_values(op.dilation)
    fields["pad_top"], fields["pad_left"] = int_values(op.padding)[:2]
    return {**fields, "groups": op.groups.value.data, **zero_points}


def epilogue_of(e: Emitter, sums: SSAValue, epilogue: Epilogue) -> tuple[str, str, str]:
    """What finishes a row of sums: the kernel, the type of its table, and the table."""
    total = e.type(sums)
    match epilogue:
        case qnn.RequantizeOp():
            return requantize.row(e, epilogue)
        case relay.ClipOp() | relay.MaximumOp():
            if total.kind != "f":
                raise Unsupported(place(epilogue), "a clamp of sums of codes is no epilogue of c")
            struct = e.kernel("bounds", total.short, Type=total.name)
            finish = e.kernel("clip_row", total.short, Type=total.name, Bounds=struct)
            low, high = (total.literal(bound.item()) for bound in clamp_bounds(epilogue))
            return finish, struct, e.table(struct, "bounds", {"low": low, "high": high})
        case None:
            return e.kernel("store_row", total.short, Type=total.name), "void", "NULL"


def clamp_bounds(op: relay.ClipOp | relay.MaximumOp) -> tuple[Array, Array]:
    """The bounds of a clamp; a maximum with a constant number has no upper one."""
    if isinstance(op, relay.ClipOp):
        return to_numpy(op.a_min), to_numpy(op.a_max)
    numbers = next((to_numpy(v.owner.value) for v in op.operands if is_constant(v.owner)), None)
    if numbers is None or numbers.size != 1:
        raise Unsupported(place(op), "a maximum with other than one constant number is no epilogue of c")
    return numbers.reshape(()), np.asarray(np.inf)
