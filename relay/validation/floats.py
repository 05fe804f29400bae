"""Check kernels that sum products of floats with constant weights, within a bound. Each pixel of the inputs is a random
combination of a few vectors over the channels ("colours"); the file claims the products of the source's weights with
these vectors. From these products, the checker computes all sums, in float64.

Each of the n additions of a sum rounds a partial sum. The size of a partial sum is estimated as the norm of the weights
times the largest number of the image; if the value that the sum starts with is larger, as that value. A sum may be off
by `SHARE` times the square root of n times this size: 28 standard deviations of the rounding error, but no bound for
the worst case. The formulas after the sum are evaluated for the claimed sum and for both ends of the interval in which
the kernel's sum may lie. The kernel's result must lie between these values, up to a rounding error in each formula.
"""

from __future__ import annotations

from math import prod

import numpy as np

from relay.runtime.memory import Array
from relay.validation.claims import Projected
from relay.validation.contraction import Differs
from relay.validation.machine_code import Kernel
from relay.validation.report import Part
from relay.validation.tail import NoTail

SHARE = {2: 2.0**-8, 4: 2.0**-21, 8: 2.0**-50}
"""The tolerance of a sum of n products, as a fraction of its size and to be multiplied by the square root of n: eight
times the largest relative rounding error, by the size of the float in bytes."""
FUNCTION = 2.0**-14
"""The relative tolerance for functions such as exp."""
FUNCTIONS = frozenset({"exp", "log", "tanh", "sigmoid", "sqrt", "rsqrt"})
RUNS = 24
MOST_WORK = 1 << 29
"""The number of multiplications that limits how many times a kernel is run in a check: all its runs together make at
most this number, but it is always run at least twice."""


def check(kernel: Kernel, part: Part, rng: np.random.Generator) -> None:
    """Run the kernel on random images whose pixels are combinations of a few vectors over the channels ("colours"),
    compare the results with the claim within a bound, and add the finding to `part`. Raises NoTail if the kernel is no
    product of floats with constant weights, Differs if a result is out of its bound."""
    call, program = kernel.call, kernel.call.program
    head, *rows = program.rows
    if head.formula not in ("nn.conv2d", "nn.dense") or len(program.results) != 1:
        raise NoTail(f"begins with {head.formula}, or has several results")
    number, weights = head.operands[:2]
    if number not in kernel.operands or weights not in call.projected:
        raise NoTail("is no product of floats with constant weights")
    known, data, out = call.projected[weights], kernel.operands[number], kernel.results[0]
    terms = prod(program.arguments[weights].shape) // len(known.norms)
    share = terms**0.5 * SHARE[min(form.dtype.itemsize for form in program.forms.values() if form.dtype.kind == "f")]
    colors = colors_of(known, data.shape[-1])
    work = known.projections.size * int(np.prod(program.forms[head.results[0]].shape, dtype=np.int64))
    runs = int(np.clip(MOST_WORK * len(known.norms) // max(work, 1), 2, RUNS))
    live, off = np.zeros(out.shape[-1:], bool), 0.0
    for run in range(runs):
        scale = 2.0 ** (run % 8 - 1)
        strengths = rng.uniform(-scale, scale, (*data.shape[:-1], len(colors) or data.shape[-1])) / (len(colors) or 1)
        data[...] = strengths @ colors if len(colors) else strengths
        given = {n: operand for n, operand in kernel.operands.items() if n != number}
        for each in given.values():
            each[...] = (
                rng.uniform(-scale, scale, each.shape) if each.dtype.kind == "f" else rng.integers(0, 9, each.shape)
            )
        image = strengths if len(colors) else data.astype(np.float64)
        sums = program.evaluate({number: image, weights: known.projections}, [head])[head.results[0]].astype(np.float64)
        bound = share * scale * known.norms.astype(np.float64)
        ends: list[Array] = []
        room: Array = np.zeros(())
        for step in (sums, sums - bound, sums + bound):
            values = program.evaluate({**call.constants, **given, head.results[0]: step}, rows)
            ends.append(values[program.results[0]].astype(np.float64))
            for row in rows:
                value = np.abs(values[row.results[0]].astype(np.float64))
                if program.forms[row.results[0]].dtype.kind == "f" and value.shape == out.shape:
                    room = np.maximum(room, value * (FUNCTION if row.formula in FUNCTIONS else share))
        kernel.run()
        least, most = np.minimum.reduce(ends), np.maximum.reduce(ends)
        if out.dtype.kind in "iu":
            room = np.ones(())
        right = (out >= least - room) & (out <= most + room)
        if not right.all():
            at = tuple(int(n) for n in np.argwhere(~right)[0])
            slack = (most - least)[at] / 2 + np.broadcast_to(room, out.shape)[at]
            raise Differs(
                f"{int((~right).sum())} of {out.size} results differ for two colours; the first at {list(at)}: "
                f"{out[at]}, not {ends[0][at]:.9g} to within {slack:.1e}"
            )
        live |= (most > least).reshape(-1, out.shape[-1]).any(axis=0)
        off = max(off, float(np.max(np.abs(out - ends[0]) / np.maximum((most - least) / 2 + room, 1e-300))))
    text = (
        f"{runs} images of random colours: sums are those that projections of the source's weights give in float64, "
        f"to within {share:.1e} of the norm of a channel's weights; results are off by {off:.0%} of that at most"
    )
    part.say("compared", text + (f"; {int((~live).sum())} channels did not change" if not live.all() else ""))


def colors_of(known: Projected, inputs: int) -> Array:
    """The random vectors over the input channels ("colours"), [colour, input], by which the weights were multiplied for
    the claim `known`. For depthwise kernels, whose claims contain the weights themselves, the array has no rows."""
    if known.depthwise:
        return np.zeros((0, inputs))
    return np.random.RandomState(0).uniform(-1, 1, (known.projections.shape[-1], inputs))
