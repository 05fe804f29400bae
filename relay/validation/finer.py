"""Make random tests of a product's sums more sensitive. A wrong sum is noticed only if it changes the result, that is,
if a step of the rescale (a sum at which the result changes) is near. There are more such steps outside the claimed
range of sums, which are reached by adding a constant to the sums, and there are more of them in a range if the scales
in the code's constants are multiplied by powers of two.

Steps are searched near those that the claimed formula gives, and used where the machine code is observed to change its
result exactly there. Channels whose code behaves differently keep the claimed range and scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from relay.runtime.memory import Array
from relay.validation.contraction import Product
from relay.validation.machine_code import Machine
from relay.validation.tail import NoTail, Tail

FAR = 1 << 29
"""The largest magnitude of sums among which steps of the rescale, sums at which the result changes, are searched."""
SPREAD = 96
"""The spread of the random test data for which scales are chosen: if the quantized data differ by at most about this
much, the sums of their products lie where the rescale has steps (sums at which the result changes)."""
ROUNDS = 4
"""The maximum number of rounds that correct the estimated positions of steps (sums at which a rescaled result changes)
by running the machine code; a round moves each step by at most 1."""
SAMPLES = 5
"""A step is a sum at which a channel's rescaled result changes. This is the number of steps of a channel that are
searched by running the machine code; the median error of their estimates corrects the estimates of all steps."""


@dataclass
class Scales:
    """The scales by which a product's sums are multiplied, one per output channel. `arrays`: the float constants of the
    machine code that hold the scales. `number`: the number of the constant in the claimed formula that holds them, or
    their shifts if the formula multiplies in fixed point. `factor`: [channels], the scales as real numbers. `most`:
    [channels], the exponents of the largest powers of two by which the scales may be multiplied."""

    arrays: list[Array]
    number: int
    factor: Array
    most: Array

    def claimed(self, constants: Mapping[int, Array], power: Array) -> dict[int, Array]:
        """The claim's `constants` by number, with the scale of each channel multiplied by 2^`power` [channels]."""
        old = constants[self.number]
        new = np.ldexp(old, power) if old.dtype.kind == "f" else old + power
        return {**constants, self.number: new.astype(old.dtype)}


def scales_of(machine: Machine, tail: Tail) -> Scales | None:
    """Return the scales by which the sums of a product's output channels are multiplied; None if no constant of the
    machine code holds them as floats, one per channel."""
    call, channels = tail.call, tail.channels
    rows = [row for row in tail.first_rows if row.formula in ("fixed_point_multiply", "multiply")]
    if len(rows) != 1 or not {*rows[0].operands[1:]} <= call.constants.keys():
        return None
    first, *more = (call.constants[number].astype(np.float64) for number in rows[0].operands[1:])
    factor = np.ldexp(first, more[0].astype(np.int64) - 31) if more else first
    if factor.shape != (channels,) or (factor <= 0).any():
        return None
    read = [machine.constant(name) for name in call.reads]
    arrays = [a for a in read if a.dtype.kind == "f" and a.size == channels and np.allclose(a, factor, 1e-3, 0)]
    most = -more[0] if more else -np.log2(factor)
    return Scales(arrays, rows[0].operands[-1], factor, np.maximum(most, 0).astype(np.int64)) if arrays else None


def refine(product: Product) -> None:
    """Make the random tests of `product` more sensitive to wrong sums: by `Product.look`, test it over a range of sums
    in which its result changes at more sums. A channel keeps its former range unless its machine code is observed to
    change its result exactly at these sums."""
    g, (low, high), channels = product.geometry, product.claimed, product.channels
    if product.live.all() and g.cells == 1 and not (g.sources == g.padding).any():
        return  # single sums are aimed at directly
    call, power = product.kernel.call, np.zeros(channels, np.int64)
    scales, tail = scales_of(product.kernel.machine, product.tail), product.tail
    count = product.changes.size
    if scales is not None:
        inputs = 1 if g.depthwise else g.inputs
        length = np.maximum(1.5 * SPREAD / 255 * (high - low) / inputs**0.5, 8 * count)
        power = np.minimum(np.rint(np.log2(count / scales.factor / length)).astype(np.int64), scales.most)
        power[(power >= -2) & (power <= 3)] = 0  # the scale is good as it is
        tail = Tail(replace(call, constants=scales.claimed(call.constants, power)))
    kept = [] if scales is None else [array.copy() for array in scales.arrays]

    def scale(power: Array) -> None:
        for array, each in zip([] if scales is None else scales.arrays, kept, strict=True):
            array[:] = np.ldexp(each, power)

    far = np.full(channels, FAR)
    try:
        edges = tail.steps(-far, far)[product.changes]
    except NoTail:
        return
    scale(power)
    product.quiet()
    edges, right = located(product, edges)
    scale(np.where(right, power, 0))
    product.start[:] = product.base
    inside = (edges > -FAR) & (edges <= FAR)
    first, last = np.where(inside, edges, FAR).min(axis=0), np.where(inside, edges, -FAR).max(axis=0)
    product.look(
        np.where(right, edges, product.edges),
        np.where(right, first - (high - low) - 1, low),
        np.where(right, last + (high - low) + 1, high),
    )


def located(product: Product, edges: Array) -> tuple[Array, Array]:
    """Correct the steps of a rescale, the sums at which the result changes, by running the machine code near the
    estimates `edges` [steps, channels]. Returns the corrected steps, and for each channel whether its results change
    exactly there and nowhere else."""
    inside = (edges > -FAR) & (edges <= FAR)
    right: Array = np.asarray(inside.any(axis=0))
    count = len(edges)
    rank = np.full(int(product.values.max() - product.values.min()) + 1, -1)
    rank[product.values - product.values[0]] = np.arange(count + 1)

    def above(number: int, sums: Array) -> Array:
        """Return, for each channel, whether its result at these sums comes after result number `number`, in the order
        in which results occur as sums rise. Set the channel's element of `right` to False if its results differ between
        pixels."""
        product.shift(np.clip(sums, -FAR, FAR))
        product.run()
        right[(product.out != product.out[:1]).any(axis=0)] = False
        return rank[np.clip(product.out[0].astype(np.int64) - product.values[0], 0, len(rank) - 1)] > number

    chosen = np.linspace(0, count - 1, min(SAMPLES, count)).astype(int)
    width = np.median(np.diff(edges, axis=0), axis=0).astype(np.int64) // 8 + 2 if count > 1 else np.full_like(right, 2)
    errors: list[Array] = []
    for number in chosen:
        least, most = edges[number] - width, edges[number] + width
        for _ in range(int(2 * width.max()).bit_length()):
            middle = (least + most) >> 1
            passed = above(int(number), middle)
            most, least = np.where(passed, middle, most), np.where(passed, least, middle + 1)
            least = np.minimum(least, most)
        errors.append(most - edges[number])
    edges = edges + np.where(inside, np.median(errors, axis=0).astype(np.int64), 0)
    open = right.copy()
    for _ in range(ROUNDS):
        moved = np.zeros_like(edges)
        for number in range(count):
            moved[number] -= above(number, edges[number] - 1)
            moved[number] += ~above(number, edges[number])
        moved = np.where(inside & open, moved, 0)
        open = open & moved.any(axis=0)
        if not open.any():
            break
        edges = edges + moved
    width = product.claimed[1] - product.claimed[0] + 1
    first, last = np.where(inside, edges, FAR).min(axis=0), np.where(inside, edges, -FAR).max(axis=0)
    for part in range(0, 9):  # no other result may occur as far away as sums are compared
        right &= ~above(0, first - 1 - width * part // 8) & above(count - 1, last + width * part // 8)
    return edges, np.asarray(right & ~open & (np.diff(edges, axis=0) >= 0).all(axis=0))
