"""Multiply-adds of a model, nominal: padded taps count."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import AnyFloat
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation

from relay.dialects import relay
from relay.dialects.attributes import int_values
from relay.dialects.op import shape, tensor
from relay.module import IRModule


@dataclass(frozen=True)
class Work:
    """Multiply-adds of one kernel, or model, and the kind of instruction that they are for."""

    macs: int
    kind: str
    what: str = ""
    """The operations, in a few words."""


def multiply_adds(op: Operation) -> int:
    """Those of one operation."""
    match op:
        case relay.Conv2dOp():
            kernel = shape(op.kernel)
            taps = kernel[0] * kernel[1] if op.depthwise else prod(kernel[1:])
            return prod(shape(op.result)) * taps
        case relay.DenseOp():
            return prod(shape(op.result)) * shape(op.kernel)[1]
        case _:
            return 0


def words(op: Operation) -> str:
    """An operation that multiplies: `3x3/2 16->32 at 56x56`."""
    if isinstance(op, relay.DenseOp):
        outputs, inputs = shape(op.kernel)
        return f"dense {inputs}->{outputs}"
    assert isinstance(op, relay.Conv2dOp)
    kernel, result = shape(op.kernel), shape(op.result)
    rows, columns = kernel[:2] if op.depthwise else kernel[1:3]
    stride = int_values(op.strides)[0]
    kind = f"depthwise {rows}x{columns}" if op.depthwise else f"{rows}x{columns}"
    channels = str(result[3]) if op.depthwise else f"{shape(op.data)[3]}->{result[3]}"
    return f"{kind}{f'/{stride}' if stride > 1 else ''} {channels} at {result[1]}x{result[2]}"


def shape_words(function: FuncOp) -> str:
    """A function by its first argument: `on 7x7x1280`."""
    inputs = function.function_type.inputs.data
    return f"on {str(inputs[0]).removeprefix('tensor<').removesuffix('>')}" if inputs else ""


def is_integer(op: Operation) -> bool:
    """Whether the operation multiplies codes."""
    return not isinstance(tensor(op.operands[1]).element_type, AnyFloat)


def kernels_of(module: IRModule) -> dict[str, Work]:
    """Each kernel's multiply-adds; the module is one of level 1, `relay.optimize`d."""
    found: dict[str, Work] = {}
    for name, function in module.functions.items():
        ops = [op for op in function.walk() if multiply_adds(op)]
        kind = "int8" if ops and all(map(is_integer, ops)) else "float32"
        what = ", ".join(map(words, ops)) or shape_words(function)
        found[name] = Work(sum(map(multiply_adds, ops)), kind, what)
    return found


def total(module: IRModule) -> Work:
    """Those of `@main`'s calls."""
    kernels = kernels_of(module)
    main = kernels["main"]
    calls = [kernels[op.callee.string_value()] for op in module["main"].walk() if isinstance(op, CallOp)]
    parts = [part for part in (main, *calls) if part.macs]
    codes = sum(part.macs for part in parts if part.kind == "int8")
    macs = sum(part.macs for part in parts)
    return Work(macs, "int8" if 2 * codes > macs else "float32")
