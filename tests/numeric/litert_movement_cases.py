"""Random small models of operators that put elements in other places, of every type."""

from __future__ import annotations

import math

import numpy as np

from tests.numeric.litert_cases import MOVED, Rng, cases, codes, dims, integers, like, pick
from tests.numeric.litert_models import Case, T


def table(numbers: object) -> T:
    return T(np.array(numbers, np.int32), "int32")


@cases("TILE", "REVERSE_V2")
def tile(rng: Rng, kind: str) -> Case:
    shape, dtype = dims(rng, 3, 1, 4), pick(rng, "float32", "int32", "uint8", "bool", "int64")
    data = T(shape, dtype)
    if kind == "REVERSE_V2":
        return Case(kind, [data, integers([int(rng.integers(0, 3))])], [T(shape, dtype)], "ReverseV2Options", {}, 2)
    reps = dims(rng, 3, 1, 4)
    return Case(kind, [data, table(reps)], [T([d * r for d, r in zip(shape, reps, strict=True)], dtype)], "TileOptions")


@cases("REVERSE_SEQUENCE")
def reverse_sequence(rng: Rng, kind: str) -> Case:
    shape, (sequence, batch) = dims(rng, 3, 2, 6), (int(a) for a in rng.permutation(3)[:2])
    data, length = T(shape, pick(rng, "float32", "int32", "uint8")), pick(rng, "int32", "int64")
    lengths = rng.integers(1, shape[sequence] + 1, shape[batch]).astype(length)
    values = {"seqDim": sequence, "batchDim": batch}
    inputs = [data, T([shape[batch]], length)]
    return Case(kind, inputs, [like(data, shape)], "ReverseSequenceOptions", values, 1, (), {1: lengths})


@cases("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
def blocks(rng: Rng, kind: str) -> Case:
    batch, height, width, channels = dims(rng, 4, 1, 4)
    sizes, dtype = dims(rng, 2, 1, 4), pick(rng, *MOVED)
    whole, space = batch * math.prod(sizes), [height * sizes[0], width * sizes[1]]
    first = rng.integers(0, 2, 2)
    inner = [max(d - int(before) - int(rng.integers(2)), 1) for d, before in zip(space, first, strict=True)]
    before = [min(int(b), d - i) for b, d, i in zip(first, space, inner, strict=True)]
    around = [[b, d - i - b] for b, d, i in zip(before, space, inner, strict=True)]
    packed, plain = [whole, height, width, channels], [batch, *inner, channels]
    given, wanted = (plain, packed) if kind == "SPACE_TO_BATCH_ND" else (packed, plain)
    data = codes(rng, given, dtype)
    options = "SpaceToBatchNDOptions" if kind == "SPACE_TO_BATCH_ND" else "BatchToSpaceNDOptions"
    return Case(kind, [data, table(sizes), table(around)], [like(data, wanted)], options, {}, 2)


@cases("SPACE_TO_DEPTH", "DEPTH_TO_SPACE")
def subpixels(rng: Rng, kind: str) -> Case:
    batch, height, width, channels = dims(rng, 4, 1, 4)
    block, dtype = int(rng.integers(1, 4)), pick(rng, *MOVED)
    deep = [batch, height, width, channels * block * block]
    wide = [batch, height * block, width * block, channels]
    given, wanted = (wide, deep) if kind == "SPACE_TO_DEPTH" else (deep, wide)
    data = codes(rng, given, dtype)
    options = "SpaceToDepthOptions" if kind == "SPACE_TO_DEPTH" else "DepthToSpaceOptions"
    return Case(kind, [data], [like(data, wanted)], options, {"blockSize": block}, 2 if kind == "SPACE_TO_DEPTH" else 1)


@cases("MIRROR_PAD")
def mirror_pad(rng: Rng, kind: str) -> Case:
    shape, mode = dims(rng, 3, 2, 6), int(rng.integers(2))
    widths = np.array([rng.integers(0, d if mode == 0 else d + 1, 2) for d in shape], np.int32)
    data = codes(rng, shape, pick(rng, *MOVED))
    out = like(data, [d + int(w.sum()) for d, w in zip(shape, widths, strict=True)])
    return Case(kind, [data, table(widths)], [out], "MirrorPadOptions", {"mode": mode}, 2)


@cases("MATRIX_DIAG", "MATRIX_SET_DIAG")
def diagonal(rng: Rng, kind: str) -> Case:
    shape, dtype = dims(rng, 3, 1, 5), pick(rng, "float32", "int32", "int8", "uint8", "int64")
    if kind == "MATRIX_DIAG":
        return Case(kind, [T(shape[:2], dtype)], [T([*shape[:2], shape[1]], dtype)], "MatrixDiagOptions")
    inputs = [T(shape, dtype), T([shape[0], min(shape[1:])], dtype)]
    return Case(kind, inputs, [T(shape, dtype)], "MatrixSetDiagOptions")


@cases("SCATTER_ND")
def scatter_nd(rng: Rng, kind: str) -> Case:
    shape, depth, places = dims(rng, 3, 1, 5), int(rng.integers(1, 4)), dims(rng, int(rng.integers(1, 3)), 1, 5)
    dtype = pick(rng, "float32", "int32", "int64", "uint8")
    indices = np.stack([rng.integers(0, shape[i], places) for i in range(depth)], -1).astype(np.int32)
    inputs = [T([*places, depth], "int32"), T([*places, *shape[depth:]], dtype), table(shape)]
    return Case(kind, inputs, [T(shape, dtype)], "ScatterNdOptions", {}, 1, (), {0: indices})


@cases("DYNAMIC_UPDATE_SLICE")
def dynamic_update_slice(rng: Rng, kind: str) -> Case:
    """Places that may be outside."""
    shape = dims(rng, 3, 1, 6)
    part = [int(rng.integers(1, d + 1)) for d in shape]
    data = codes(rng, shape, pick(rng, "float32", "int32", "int64", "int8"))
    start = rng.integers(-2, 7, 3).astype(pick(rng, "int32", "int64"))
    inputs = [data, like(data, part), T([3], start.dtype.name)]
    return Case(kind, inputs, [like(data, shape)], "DynamicUpdateSliceOptions", {}, 1, (), {2: start})


@cases("TOPK_V2")
def topk(rng: Rng, kind: str) -> Case:
    """Numbers of which many are equal."""
    shape, dtype = dims(rng, 2, 1, 12), pick(rng, *MOVED, "int64")
    k = int(rng.integers(1, shape[-1] + 1))
    data = codes(rng, shape, dtype)
    numbers = rng.integers(0, 6, shape).astype(dtype)
    outputs = [like(data, [shape[0], k]), T([shape[0], k], "int32")]
    return Case(kind, [data, table(k)], outputs, "TopKV2Options", {}, 2, (), {0: numbers})


@cases("BITCAST")
def bitcast(rng: Rng, kind: str) -> Case:
    shape, (source, target) = (
        dims(rng, 3),
        [("float32", "int32"), ("int8", "uint8"), ("int32", "float32")][int(rng.integers(3))],
    )
    numbers = (rng.standard_normal(shape) * 100).astype(np.float32)
    given = numbers.view(np.int32) if source == "int32" else numbers.astype(source)
    return Case(kind, [T(shape, source)], [T(shape, target)], "", {}, 1, (), {0: given})
