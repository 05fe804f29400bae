"""Random small models of the operators that move data, and of those that keep a state. `CASES` here is that of all."""

from __future__ import annotations

import numpy as np

from tests.numeric import litert_elementwise_cases, litert_movement_cases, litert_nn_cases
from tests.numeric.litert_cases import (
    CASES,
    CODES,
    MOVED,
    Rng,
    cases,
    codes,
    dims,
    integers,
    like,
    pick,
    scale,
    zero_point,
)
from tests.numeric.litert_models import Case, T, random_numbers

__all__ = ["CASES", "litert_elementwise_cases", "litert_movement_cases", "litert_nn_cases"]


@cases("RESHAPE", "SQUEEZE", "EXPAND_DIMS")
def reshape(rng: Rng, kind: str) -> Case:
    shape = dims(rng, 3)
    data = codes(rng, [1, *shape] if kind == "SQUEEZE" else shape, pick(rng, *MOVED))
    match kind:
        case "RESHAPE":
            wanted = [shape[0] * shape[1], -1] if rng.integers(2) else [shape[2], 1, shape[0] * shape[1]]
            out = like(data, [shape[2] if d == -1 else d for d in wanted])
            if rng.integers(2):
                return Case(kind, [data, integers(*wanted)], [out], "ReshapeOptions", {"newShape": wanted})
            return Case(kind, [data], [out], "ReshapeOptions", {"newShape": wanted})
        case "SQUEEZE":
            return Case(kind, [data], [like(data, shape)], "SqueezeOptions", {"squeezeDims": [-4]})
        case _:
            return Case(kind, [data, integers(-1)], [like(data, [*shape, 1])], "ExpandDimsOptions")


@cases("TRANSPOSE")
def transpose(rng: Rng, kind: str) -> Case:
    shape, order = dims(rng, 4), [int(a) for a in rng.permutation(4)]
    data = codes(rng, shape, pick(rng, *MOVED))
    return Case(kind, [data, integers(*order)], [like(data, [shape[a] for a in order])], "TransposeOptions", {}, 2)


@cases("PAD", "PADV2")
def pad(rng: Rng, kind: str) -> Case:
    dtype, shape = pick(rng, *MOVED), dims(rng, 4, 1, 5)
    widths = rng.integers(0, 3, (4, 2)).astype(np.int32)
    data = codes(rng, shape, dtype)
    out = like(data, [d + int(w.sum()) for d, w in zip(shape, widths, strict=True)])
    filler = [like(data, random_numbers(rng, [1], dtype))] if kind == "PADV2" else []
    options = "PadOptions" if kind == "PAD" else "PadV2Options"
    return Case(kind, [data, T(widths, "int32"), *filler], [out], options, {}, 2 if dtype in CODES else 1)


@cases("CONCATENATION")
def concatenation(rng: Rng, kind: str) -> Case:
    dtype, shape, axis = pick(rng, *MOVED), dims(rng, 3), int(rng.integers(-3, 3))
    first = codes(rng, shape, dtype)
    inputs, total = [first], shape[axis]
    for _ in range(int(rng.integers(1, 3))):
        other = list(shape)
        other[axis] = int(rng.integers(1, 5))
        total += other[axis]
        inputs.append(codes(rng, other, dtype) if dtype == "uint8" else like(first, other))
    whole = list(shape)
    whole[axis] = total
    return Case(kind, inputs, [like(first, whole)], "ConcatenationOptions", {"axis": axis}, 2)


@cases("PACK")
def pack(rng: Rng, kind: str) -> Case:
    shape, axis, count = dims(rng, 2), int(rng.integers(-3, 3)), int(rng.integers(1, 4))
    data = codes(rng, shape, pick(rng, *MOVED))
    whole = list(shape)
    whole.insert(axis % 3, count)
    values = {"valuesCount": count, "axis": axis}
    return Case(kind, [like(data, shape) for _ in range(count)], [like(data, whole)], "PackOptions", values, 2)


@cases("UNPACK")
def unpack(rng: Rng, kind: str) -> Case:
    shape, axis = dims(rng, 3, 1, 4), int(rng.integers(-3, 3))
    data = codes(rng, shape, pick(rng, *MOVED))
    layer = [d for i, d in enumerate(shape) if i != axis % 3]
    outputs = [like(data, layer) for _ in range(shape[axis])]
    return Case(kind, [data], outputs, "UnpackOptions", {"num": shape[axis], "axis": axis}, 2)


@cases("SPLIT", "SPLIT_V")
def split(rng: Rng, kind: str) -> Case:
    count, axis, shape = int(rng.integers(1, 4)), int(rng.integers(-3, 3)), dims(rng, 3)
    parts = [shape[axis]] * count if kind == "SPLIT" else dims(rng, count, 1, 4)
    whole = list(shape)
    whole[axis] = sum(parts)
    data = codes(rng, whole, pick(rng, *MOVED))
    outputs: list[T] = []
    for part in parts:
        layer = list(shape)
        layer[axis] = part
        outputs.append(like(data, layer))
    if kind == "SPLIT":
        return Case(kind, [integers(axis), data], outputs, "SplitOptions", {"numSplits": count}, 2)
    sizes = T(np.array([*parts[:-1], -1], np.int32), "int32")
    return Case(kind, [data, sizes, integers(axis)], outputs, "SplitVOptions", {"numSplits": count}, 2)


@cases("SLICE")
def slice_(rng: Rng, kind: str) -> Case:
    shape = dims(rng, 3, 2, 6)
    begin = [int(rng.integers(0, d)) for d in shape]
    size = [int(rng.integers(1, d - b + 1)) for d, b in zip(shape, begin, strict=True)]
    given = [-1 if rng.integers(3) == 0 else s for s in size]
    result = [d - b if g == -1 else g for d, b, g in zip(shape, begin, given, strict=True)]
    data = codes(rng, shape, pick(rng, *MOVED))
    return Case(kind, [data, integers(*begin), integers(*given)], [like(data, result)], "SliceOptions", {}, 2)


@cases("STRIDED_SLICE")
def strided_slice(rng: Rng, kind: str) -> Case:
    """With one new axis and an ellipsis at times; numpy says the shape."""
    shape = dims(rng, 3, 2, 6)
    begin_mask, end_mask, shrink = (int(m) for m in rng.integers(0, 32, 3))
    specs = int(rng.integers(1, 4))
    ellipsis, added = ((1 << int(rng.integers(5))) & ((1 << specs) - 1) for _ in range(2))
    whole = 3 - (specs - bool(added & ~ellipsis) - bool(ellipsis))
    begin, end, strides, index = list[int](), list[int](), list[int](), list[slice | int | None]()
    axis = 0
    for i in range(specs):
        size = 1 if axis > 2 else shape[axis]
        begin.append(int(rng.integers(-size, size)))
        end.append(int(rng.integers(-size, size + 1)))
        strides.append(1 if shrink >> i & 1 else int(rng.choice([1, 1, 2, -1])))
        if ellipsis >> i & 1:
            index += [slice(None)] * whole
            axis += whole
            continue
        if added >> i & 1:
            index.append(None)
            continue
        first = None if begin_mask >> i & 1 else begin[-1]
        last = None if end_mask >> i & 1 else end[-1]
        index.append((first or 0) if shrink >> i & 1 else slice(first, last, strides[-1]))
        axis += 1
    result = list(np.empty(shape, bool)[tuple(index)].shape)
    data = codes(rng, shape, pick(rng, *MOVED))
    values = {"beginMask": begin_mask, "endMask": end_mask, "shrinkAxisMask": shrink}
    values |= {"ellipsisMask": ellipsis, "newAxisMask": added}
    inputs = [data, integers(*begin), integers(*end), integers(*strides)]
    return Case(kind, inputs, [like(data, result)], "StridedSliceOptions", values, 2)


@cases("GATHER")
def gather(rng: Rng, kind: str) -> Case:
    shape, axis, wanted = dims(rng, 3), int(rng.integers(-3, 3)), dims(rng, int(rng.integers(0, 3)), 1, 4)
    data = codes(rng, shape, pick(rng, *MOVED))
    at = axis % 3
    indices = rng.integers(0, shape[at], wanted).astype(np.int32)
    out = like(data, [*shape[:at], *wanted, *shape[at + 1 :]])
    return Case(kind, [data, T(wanted, "int32")], [out], "GatherOptions", {"axis": axis}, 2, (), {1: indices})


@cases("GATHER_ND")
def gather_nd(rng: Rng, kind: str) -> Case:
    shape, depth, wanted = dims(rng, 3), int(rng.integers(1, 4)), dims(rng, int(rng.integers(1, 3)), 1, 4)
    data = codes(rng, shape, pick(rng, *MOVED))
    indices = np.stack([rng.integers(0, shape[i], wanted) for i in range(depth)], -1).astype(np.int32)
    out = like(data, [*wanted, *shape[depth:]])
    return Case(kind, [data, T([*wanted, depth], "int32")], [out], "GatherNdOptions", {}, 2, (), {1: indices})


@cases("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def resize(rng: Rng, kind: str) -> Case:
    shape, size = dims(rng, 4, 1, 8), dims(rng, 2, 1, 12)
    align = bool(rng.integers(2))
    values = {"alignCorners": align, "halfPixelCenters": bool(rng.integers(2)) and not align}
    data = codes(rng, shape, pick(rng, *CODES, "float32"))
    out = like(data, [shape[0], *size, shape[3]])
    options = "ResizeBilinearOptions" if kind == "RESIZE_BILINEAR" else "ResizeNearestNeighborOptions"
    return Case(kind, [data, integers(*size)], [out], options, values, 3 if kind == "RESIZE_BILINEAR" else 2)


@cases("SVDF")
def svdf(rng: Rng, kind: str) -> Case:
    batch, inputs, rank, units, memory = dims(rng, 5, 1, 5)
    filters = rank * units
    data, features = (
        codes(rng, [batch, inputs], "int8"),
        T(random_numbers(rng, [filters, inputs], "int8"), "int8", 0.01),
    )
    time = T(random_numbers(rng, [filters, memory], "int16"), "int16", scale(rng, 1e-6, 1e-4))
    state = T([batch, filters * memory], "int16", scale(rng, 1e-5, 1e-3), variable=True)
    held = state.scale if isinstance(state.scale, float) else 1.0
    bias = T(
        random_numbers(rng, [units], "int32"), "int32", held * (time.scale if isinstance(time.scale, float) else 1)
    )
    out = T([batch, units], "int8", scale(rng, 1e-3, 0.1), zero_point(rng, "int8"))
    values = {"rank": rank, "fusedActivationFunction": 1}
    return Case(kind, [data, features, time, bias, state], [out], "SVDFOptions", values, 3)


@cases("UNIDIRECTIONAL_SEQUENCE_LSTM")
def lstm(rng: Rng, kind: str) -> Case:
    batch, steps, inputs, units = dims(rng, 4, 1, 6)
    coupled, time_major = bool(rng.integers(2)), bool(rng.integers(2))
    outer = [steps, batch] if time_major else [batch, steps]
    data = codes(rng, [*outer, inputs], "int8")
    hidden_scale, hidden_zero = scale(rng, 1 / 256, 1 / 100), int(rng.integers(-20, 20))
    gates = [None if coupled and gate == 0 else gate for gate in range(4)]

    def kernel(width: int) -> list[T | None]:
        return [
            None if gate is None else T(random_numbers(rng, [units, width], "int8"), "int8", scale(rng, 1e-3, 0.05))
            for gate in gates
        ]

    biases = [None if gate is None else T(random_numbers(rng, [units], "int32"), "int32") for gate in gates]
    for bias in biases:
        if bias is not None:
            bias.scale = 1e-4
    state = T([batch, units], "int8", hidden_scale, hidden_zero, variable=True)
    cell = T([batch, units], "int16", 2.0 ** -int(rng.integers(9, 14)), variable=True)
    middle = [T([0], "int16", 2.0**-12) for _ in range(4)] + [T([0], "int8", hidden_scale, hidden_zero)]
    absent: list[T | None] = [None]
    slots = [data, *kernel(inputs), *kernel(units), *absent * 3, *biases, *absent * 2, state, cell, *absent * 4]
    clip = float(rng.choice([0.0, 0.5, 8.0]))
    values = {"fusedActivationFunction": 4, "cellClip": clip, "projClip": 0.0, "timeMajor": time_major}
    out = T([*outer, units], "int8", hidden_scale, hidden_zero)
    return Case(kind, slots, [out], "UnidirectionalSequenceLSTMOptions", values, 2, middle)
