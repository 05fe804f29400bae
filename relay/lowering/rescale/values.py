"""Finds the constants of a rescale in every caller, and enumerates the values of scalars that depend on one code."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i32
from xdsl.dialects.linalg.ops import GenericOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from relay.dialects.attributes import Array, to_numpy
from relay.lowering.call_graph import CallGraph
from relay.lowering.linalg.emitter import number


def tensors(value: SSAValue, calls: CallGraph) -> list[Array] | None:
    """Return the contents of a constant tensor: one array for each call if the tensor is an argument of the function,
    else a single array. None if the tensor is not constant."""
    if isinstance(value.owner, arith.ConstantOp):
        return [to_numpy(value.owner.value)]
    if not isinstance(value, BlockArgument):
        return None
    constants = calls.constants(value)
    return None if constants is None else [to_numpy(constant.value) for constant in constants]


def read_by(argument: BlockArgument, calls: CallGraph) -> list[Array] | None:
    """Return the elements of the constant tensor that a `linalg.generic` reads as this argument of its body, in an
    array for each call of the function; None if it is not constant."""
    generic = argument.owner.parent_op()
    if not isinstance(generic, GenericOp) or argument.index >= len(generic.inputs):
        return None
    found = tensors(generic.inputs[argument.index], calls)
    return None if found is None else [array.reshape(-1) for array in found]


def scalars(value: SSAValue, calls: CallGraph) -> list[Array] | None:
    """Return the values that an integer inside a `linalg.generic` takes, in an array for each call of the function,
    with one element or one per channel; a single array if all calls are alike. None if the values do not follow from
    constants."""
    if isinstance(value.owner, arith.ConstantOp):
        return [to_numpy(value.owner.value).reshape(1).astype(np.int64)]
    if isinstance(value, BlockArgument):
        found = read_by(value, calls)
        return None if found is None else [array.astype(np.int64) for array in found]
    owner = value.owner
    if isinstance(owner, Block) or owner.name not in SIMPLE or owner.name == "arith.shli":
        return None
    parts = [scalars(v, calls) for v in owner.operands]
    if any(p is None for p in parts):
        return None
    known = [p for p in parts if p is not None]
    count = max(len(p) for p in known)
    spread = [p * count if len(p) == 1 else p for p in known]
    return [SIMPLE[owner.name](*(p[i] for p in spread)) for i in range(count)]


def exponent_of(shift: SSAValue) -> SSAValue | None:
    """Return the i32 `e` of a shift that is `trunci(31 - e)`; else None."""
    owner = shift.owner
    source = owner.operands[0].owner if isinstance(owner, Operation) and owner.name == "arith.trunci" else None
    if isinstance(source, arith.SubiOp) and number(source.lhs) == 31 and source.rhs.type == i32:
        return source.rhs
    return None


def same(a: Array) -> Array:
    return a


def shift_left(a: Array, b: Array) -> Array:
    return a << b


SIMPLE: dict[str, Callable[..., Array]] = {
    "arith.extsi": same,
    "arith.extui": same,
    "arith.trunci": same,
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.shli": shift_left,
}
"""For the names of integer operations, functions that compute them in int64. They are right if nothing wraps around,
which `enumerate_codes` checks."""


def enumerate_codes(value: SSAValue) -> Array | None:
    """Return every value that the scalar can have, if it is computed from one 8-bit code and constants; else None."""
    codes: set[SSAValue] = set()
    unsigned: set[bool] = set()

    def walk(v: SSAValue) -> Array | None:
        owner = v.owner
        if isinstance(owner, arith.ConstantOp):
            return to_numpy(owner.value).reshape(1).astype(np.int64)
        if isinstance(v, BlockArgument) or not isinstance(owner, Operation) or owner.name not in SIMPLE:
            return None
        if owner.name in ("arith.extsi", "arith.extui") and owner.operands[0].type == IntegerType(8):
            codes.add(owner.operands[0])
            unsigned.add(owner.name == "arith.extui")
            dtype = np.uint8 if owner.name == "arith.extui" else np.int8
            return np.arange(256, dtype=np.uint8).view(dtype).astype(np.int64)
        if owner.name == "arith.trunci":
            return None
        parts = [walk(o) for o in owner.operands]
        if any(p is None for p in parts):
            return None
        result = SIMPLE[owner.name](*parts)
        return result if bool((np.abs(result) < 2**31).all()) else None

    numbers = walk(value)
    return numbers if numbers is not None and len(codes) == 1 and len(unsigned) == 1 else None
