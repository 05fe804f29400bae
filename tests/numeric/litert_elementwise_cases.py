"""Random small models of elementwise operators, reductions and what makes tensors, on plain numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.numeric.litert_cases import CODES, Rng, cases, codes, dims, integers, like, pick
from tests.numeric.litert_models import Array, Case, T, random_numbers
from tests.numeric.litert_nn_cases import OPTIMIZED

TYPES = {"float32": 0, "int32": 2, "int64": 4}
"""Numbers of types in the schema."""


def narrowed(rng: Rng, shape: list[int]) -> list[int]:
    """A shape that broadcasts to this one."""
    found = [d if rng.integers(2) else 1 for d in shape]
    return found[int(rng.integers(0, 2)) if len(shape) < 4 else 0 :]


@cases("CEIL", "COS", "SIN", "ROUND", "SQUARE", "SIGN")
def function(rng: Rng, kind: str) -> Case:
    shape = dims(rng, 3, 1, 9)
    numbers = random_numbers(rng, shape, "float32")
    if kind in ("ROUND", "CEIL"):
        numbers = np.round(numbers * 2).astype(np.float32) / np.float32(2)
    options = {"COS": "CosOptions", "SQUARE": "SquareOptions"}.get(kind, "")
    kernels = OPTIMIZED if kind in ("CEIL", "ROUND") else "BUILTIN_REF"
    data = T(shape, "float32")
    return Case(kind, [data], [T(shape, "float32")], options, {}, 1, (), {0: numbers}, kernels=kernels)


@cases("GELU")
def gelu(rng: Rng, kind: str) -> Case:
    shape = dims(rng, 2, 1, 20)
    numbers = random_numbers(rng, shape, "float32") / np.float32(5)
    values = {"approximate": bool(rng.integers(2))}
    return Case(kind, [T(shape, "float32")], [T(shape, "float32")], "GeluOptions", values, 1, (), {0: numbers})


@cases("POW", "FLOOR_MOD", "ATAN2", "LOGICAL_AND", "LOGICAL_OR", "BITWISE_XOR", "RIGHT_SHIFT")
def binary(rng: Rng, kind: str) -> Case:
    types = {
        "POW": ("float32", "int32"),
        "FLOOR_MOD": ("float32", "int32", "int64"),
        "ATAN2": ("float32",),
        "BITWISE_XOR": ("int8", "uint8", "int32"),
        "RIGHT_SHIFT": ("int8", "uint8", "int32"),
    }.get(kind, ("bool",))
    dtype, shape = pick(rng, *types), dims(rng, 4, 1, 5)
    narrow = shape if kind in ("ATAN2", "BITWISE_XOR", "RIGHT_SHIFT") else [d if rng.integers(2) else 1 for d in shape]
    lhs, rhs = random_numbers(rng, shape, dtype), random_numbers(rng, narrow, dtype)
    if kind == "POW":
        lhs, rhs = (np.abs(lhs) / np.array(5, dtype)).astype(dtype), (np.abs(rhs) % 4).astype(dtype)
    elif kind == "FLOOR_MOD":
        rhs[np.abs(rhs) < 1] = 1
    elif kind == "RIGHT_SHIFT":
        rhs = rng.integers(0, np.iinfo(dtype).bits, narrow).astype(dtype)
    options = {
        "POW": "PowOptions",
        "FLOOR_MOD": "FloorModOptions",
        "LOGICAL_AND": "LogicalAndOptions",
        "LOGICAL_OR": "LogicalOrOptions",
    }
    return Case(
        kind, [T(shape, dtype), T(narrow, dtype)], [T(shape, dtype)], options.get(kind, ""), {}, 1, (), {0: lhs, 1: rhs}
    )


@cases("SQUARED_DIFFERENCE")
def squared_difference(rng: Rng, kind: str) -> Case:
    dtype, shape = pick(rng, "float32", "int32"), dims(rng, 4, 1, 5)
    narrow = [d if rng.integers(2) else 1 for d in shape]
    numbers = {i: random_numbers(rng, s, dtype) for i, s in enumerate((shape, narrow))}
    inputs = [T(shape, dtype), T(narrow, dtype)]
    return Case(kind, inputs, [T(shape, dtype)], "SquaredDifferenceOptions", {}, 1, (), numbers)


@cases("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
def compare(rng: Rng, kind: str) -> Case:
    """Numbers of which many are equal."""
    dtype = pick(rng, "float32", "int32", "int64", *(["bool"] if kind in ("EQUAL", "NOT_EQUAL") else []))
    shape = dims(rng, 4, 1, 5)
    narrow = [d if rng.integers(2) else 1 for d in shape]
    numbers = {i: rng.integers(0, 2 if dtype == "bool" else 4, s).astype(dtype) for i, s in enumerate((shape, narrow))}
    inputs = [T(shape, dtype), T(narrow, dtype)]
    options = f"{kind.title().replace('_', '')}Options"
    return Case(kind, inputs, [T(shape, "bool")], options, {}, 1, (), numbers)


@cases("LOGICAL_NOT")
def logical_not(rng: Rng, kind: str) -> Case:
    shape = dims(rng, 3)
    return Case(kind, [T(shape, "bool")], [T(shape, "bool")], "LogicalNotOptions")


@cases("SELECT", "SELECT_V2")
def select(rng: Rng, kind: str) -> Case:
    shape, dtype = dims(rng, 3, 2, 5), pick(rng, *CODES, "float32", "int32", "bool")
    first = codes(rng, shape, dtype) if dtype in CODES else T(shape, dtype)
    options = "SelectOptions" if kind == "SELECT" else "SelectV2Options"
    if kind == "SELECT":
        condition = T(shape if rng.integers(2) else shape[:1], "bool")
        return Case(kind, [condition, first, like(first, shape)], [like(first, shape)], options)
    condition = T([d if rng.integers(2) else 1 for d in shape], "bool")
    second = like(first, [d if rng.integers(2) else 1 for d in shape])
    return Case(kind, [condition, first, second], [like(first, shape)], options)


@cases("ADD_N")
def add_n(rng: Rng, kind: str) -> Case:
    shape, dtype, count = dims(rng, 3), pick(rng, "float32", "int32"), int(rng.integers(1, 5))
    return Case(kind, [T(shape, dtype) for _ in range(count)], [T(shape, dtype)], "AddNOptions")


@cases("REDUCE_ANY", "REDUCE_ALL", "REDUCE_PROD")
def reduce(rng: Rng, kind: str) -> Case:
    dtype = pick(rng, "float32", "int32", "int64") if kind == "REDUCE_PROD" else "bool"
    shape, keep = dims(rng, 4, 1, 6), bool(rng.integers(2))
    axes = sorted(int(a) for a in rng.choice(4, int(rng.integers(1, 4)), replace=False))
    kept = [1 if i in axes else d for i, d in enumerate(shape) if keep or i not in axes]
    numbers = random_numbers(rng, shape, dtype)
    if dtype == "bool":
        numbers = rng.random(shape) < (0.1 if kind == "REDUCE_ANY" else 0.9)
    elif dtype == "float32":
        numbers = numbers / np.float32(8)
    inputs = [T(shape, dtype), T(np.array(axes, np.int32), "int32")]
    return Case(kind, inputs, [T(kept, dtype)], "ReducerOptions", {"keepDims": keep}, 1, (), {0: numbers})


@cases("CUMSUM")
def cumsum(rng: Rng, kind: str) -> Case:
    shape, dtype = dims(rng, 3, 1, 9), pick(rng, "float32", "int32", "int64")
    values = {"exclusive": bool(rng.integers(2)), "reverse": bool(rng.integers(2))}
    axis = integers(int(rng.integers(-3, 3)))
    return Case(kind, [T(shape, dtype), axis], [T(shape, dtype)], "CumsumOptions", values)


@cases("FILL", "BROADCAST_TO")
def fill(rng: Rng, kind: str) -> Case:
    shape, dtype = dims(rng, 3), pick(rng, *CODES, "float32", "int32", "int64", "bool")
    wanted = T(np.array(shape, np.int32), "int32")
    if kind == "FILL":
        value = codes(rng, [], dtype) if dtype in CODES else T([], dtype)
        return Case(kind, [wanted, value], [like(value, shape)], "FillOptions", {}, 3)
    data = T([d if rng.integers(2) else 1 for d in shape][int(rng.integers(2)) :], dtype)
    return Case(kind, [data, wanted], [T(shape, dtype)], "BroadcastToOptions", {}, 3)


@cases("ZEROS_LIKE")
def zeros_like(rng: Rng, kind: str) -> Case:
    shape, dtype = dims(rng, 3), pick(rng, "float32", "int32", "int64")
    return Case(kind, [T(shape, dtype)], [T(shape, dtype)], "ZerosLikeOptions")


@cases("RANGE")
def range_(rng: Rng, kind: str) -> Case:
    dtype = pick(rng, "float32", "int32", "int64")
    step = float(rng.choice([1, 2, 3, -1, -2])) / (2 if dtype == "float32" else 1)
    start, count = int(rng.integers(-9, 9)), int(rng.integers(1, 20))
    numbers: list[Array] = [np.array(v, dtype) for v in (start, start + count * step, step)]
    return Case(kind, [T(n, dtype) for n in numbers], [T([count], dtype)], "RangeOptions")


@cases("SHAPE", "RANK")
def measure(rng: Rng, kind: str) -> Case:
    shape, dtype = dims(rng, int(rng.integers(1, 5))), pick(rng, "int32", "int64")
    data = T(shape, pick(rng, *CODES, "float32", "bool"))
    if kind == "RANK":
        return Case(kind, [data], [T([], "int32")], "RankOptions")
    return Case(kind, [data], [T([len(shape)], dtype)], "ShapeOptions", {"outType": TYPES[dtype]})


@cases("ONE_HOT")
def one_hot(rng: Rng, kind: str) -> Case:
    shape, depth, dtype = dims(rng, 2), int(rng.integers(1, 7)), pick(rng, "float32", "int32", "int64", "int8", "bool")
    axis = int(rng.integers(-1, 3))
    whole = list(shape)
    whole.insert(axis % 3, depth)
    indices: dict[int, Any] = {0: rng.integers(-1, depth + 1, shape).astype(np.int32)}
    inputs = [T(shape, "int32"), T(np.array(depth, np.int32), "int32"), T([], dtype), T([], dtype)]
    return Case(kind, inputs, [T(whole, dtype)], "OneHotOptions", {"axis": axis}, 1, (), indices)


@cases("BROADCAST_ARGS")
def broadcast_args(rng: Rng, kind: str) -> Case:
    shape, dtype = dims(rng, int(rng.integers(1, 5))), pick(rng, "int32", "int64")
    sides = [np.array(narrowed(rng, shape), dtype) for _ in range(2)]
    longest = max(side.size for side in sides)
    inputs = [T([side.size], dtype) for side in sides]
    return Case(kind, inputs, [T([longest], dtype)], "", {}, 1, (), dict(enumerate(sides)))
