"""Random small models of recurrent layers of floats, with weights of floats or of int8 ("hybrid")."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.numeric.litert_cases import Rng, dims, pick, scale
from tests.numeric.litert_models import Case, T, random_numbers
from tests.numeric.litert_quantised_cases import quantised


def image(rng: Rng, shape: list[int]) -> dict[int, Any]:
    """Data near 1."""
    return {0: rng.standard_normal(shape).astype(np.float32)}


def kernel(rng: Rng, shape: list[int], hybrid: bool) -> T:
    if hybrid:
        return T(np.maximum(random_numbers(rng, shape, "int8"), -127), "int8", scale(rng, 1e-3, 0.01))
    return numbers(rng, shape)


def numbers(rng: Rng, shape: list[int]) -> T:
    return T((rng.standard_normal(shape) / 3).astype(np.float32), "float32")


def held(shape: list[int]) -> T:
    return T(shape, "float32", variable=True)


class Layer:
    """The weights of one LSTM: with or without what may be left out."""

    def __init__(self, rng: Rng, batch: int, inputs: int, hybrid: bool, norms: bool, sizes: list[int]) -> None:
        units, out = sizes
        coupled, peepholes, projected = (bool(n) for n in rng.integers(0, 2, 3))
        self.out = out = out if projected else units
        gates = [None if coupled and gate == 0 else gate for gate in range(4)]
        absent = None

        def each(make: Any) -> list[T | None]:
            return [None if gate is None else make() for gate in gates]

        peephole = each(lambda: kernel(rng, [units], hybrid)) if peepholes else [None] * 4
        self.weights: list[T | None] = [
            *each(lambda: kernel(rng, [units, inputs], hybrid)),
            *each(lambda: kernel(rng, [units, out], hybrid)),
            *(peephole[gate] for gate in (0, 1, 3)),
            *each(lambda: numbers(rng, [units])),
            kernel(rng, [out, units], hybrid) if projected else None,
            numbers(rng, [out]) if projected and rng.integers(2) else None,
        ]
        self.states: list[T | None] = [held([batch, out]), held([batch, units])]
        self.norms: list[T | None] = each(lambda: numbers(rng, [units])) if norms else [absent] * 4


@quantised("UNIDIRECTIONAL_SEQUENCE_LSTM", "LSTM", types="float32 hybrid")
def lstm(rng: Rng, kind: str, dtype: str) -> Case:
    batch, steps, inputs = *dims(rng, 2, 1, 4), int(rng.integers(1, 6))
    time_major = bool(rng.integers(2))
    layer = Layer(rng, batch, inputs, dtype == "hybrid", bool(rng.integers(2)), dims(rng, 2, 1, 6))
    single = kind == "LSTM"
    outer = [batch] if single else [steps, batch] if time_major else [batch, steps]
    slots = [T([*outer, inputs], "float32"), *layer.weights, *layer.states, *layer.norms]
    clips = {"cellClip": float(rng.choice([0.0, 0.5])), "projClip": float(rng.choice([0.0, 0.25]))}
    values = {"fusedActivationFunction": int(rng.choice([4, 4, 1])), **clips}
    values |= {} if single else {"timeMajor": time_major}
    options = "LSTMOptions" if single else "UnidirectionalSequenceLSTMOptions"
    out = [T([*outer, layer.out], "float32")]
    return Case(kind, slots, out, options, values, 3, custom_inputs=image(rng, [*outer, inputs]))


@quantised("BIDIRECTIONAL_SEQUENCE_LSTM", types="float32 hybrid")
def both_ways(rng: Rng, kind: str, dtype: str) -> Case:
    """LiteRT gets joined results of several sequences wrong where the batch leads and gates are coupled."""
    batch, steps, inputs = *dims(rng, 2, 1, 3), int(rng.integers(1, 6))
    time_major, merge = bool(rng.integers(2)), bool(rng.integers(2))
    if merge and not time_major:
        batch = 1
    sizes = [int(rng.integers(1, 6))] * 2
    ways = [Layer(rng, batch, inputs, dtype == "hybrid", False, sizes) for _ in range(2)]
    outer = [steps, batch] if time_major else [batch, steps]
    states = [state for way in ways for state in way.states]
    slots = [T([*outer, inputs], "float32"), *ways[0].weights, *ways[1].weights, *states, *[None] * 9]
    values = {"fusedActivationFunction": 4, "timeMajor": time_major, "mergeOutputs": merge}
    values |= {"cellClip": 0.0, "projClip": 0.0}
    widths = [ways[0].out + ways[1].out] if merge else [way.out for way in ways]
    out = [T([*outer, width], "float32") for width in widths]
    options = "BidirectionalSequenceLSTMOptions"
    return Case(kind, slots, out, options, values, 1, custom_inputs=image(rng, [*outer, inputs]))


@quantised("BIDIRECTIONAL_SEQUENCE_RNN", types="float32")
@quantised("RNN", "UNIDIRECTIONAL_SEQUENCE_RNN", types="float32 hybrid")
def simple(rng: Rng, kind: str, dtype: str) -> Case:
    batch, steps, inputs = *dims(rng, 2, 1, 4), int(rng.integers(1, 6))
    both, time_major, merge = kind.startswith("BI"), bool(rng.integers(2)), bool(rng.integers(2))
    hybrid, units = dtype == "hybrid", dims(rng, 2, 1, 6)
    ways = [
        [kernel(rng, [n, inputs], hybrid), kernel(rng, [n, n], hybrid), numbers(rng, [n]), held([batch, n])]
        for n in units[: 1 + both]
    ]
    outer = [batch] if kind == "RNN" else [steps, batch] if time_major else [batch, steps]
    slots: list[T | None] = [T([*outer, inputs], "float32"), *(tensor for way in ways for tensor in way)]
    values: dict[str, Any] = {"fusedActivationFunction": int(rng.choice([4, 1, 3]))}
    values |= {"timeMajor": time_major} if kind != "RNN" else {}
    values |= {"mergeOutputs": merge} if both else {}
    widths = [sum(units)] if both and merge else units[: 1 + both]
    options = {"RNN": "RNNOptions", "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions"}
    return Case(
        kind,
        slots + [None] * (3 * both),
        [T([*outer, width], "float32") for width in widths],
        options.get(kind, "BidirectionalSequenceRNNOptions"),
        values,
        1 + hybrid,
        custom_inputs=image(rng, [*outer, inputs]),
    )


@quantised("SVDF", types="float32 hybrid")
def svdf(rng: Rng, kind: str, dtype: str) -> Case:
    batch, inputs, rank, units, memory = dims(rng, 5, 1, 5)
    filters, hybrid = rank * units, dtype == "hybrid"
    slots = [
        T([batch, inputs], "float32"),
        kernel(rng, [filters, inputs], hybrid),
        kernel(rng, [filters, memory], hybrid),
        numbers(rng, [units]) if pick(rng, "bias", "none") == "bias" else None,
        held([batch, filters * memory]),
    ]
    values = {"rank": rank, "fusedActivationFunction": int(rng.choice([0, 1, 3]))}
    out = [T([batch, units], "float32")]
    return Case(kind, slots, out, "SVDFOptions", values, 2, custom_inputs=image(rng, [batch, inputs]))
