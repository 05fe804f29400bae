"""Check kernels by running them on random inputs and comparing all results with the claimed formula. For maxima and
averages, the probability that these runs miss an error in a single element is bounded, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, log2, prod

import numpy as np

from relay.runtime.memory import Array
from relay.validation.claims import Call, Place, Program
from relay.validation.machine_code import Kernel
from relay.validation.pointwise import bound_of, expect, kind_of
from relay.validation.report import Part
from relay.validation.tail import NoTail

RUNS_PER_BIT = 45
"""Runs for each bit of certainty: as (1 - 1/64)^45 < 1/2, a difference that occurs for a 64th of all inputs is missed
with a probability below 2^-bits."""
FLOAT_RUNS = 64
PRODUCT_RUNS = 8
"""The most runs of a kernel with random inputs: `FLOAT_RUNS` if it computes floats, `PRODUCT_RUNS` if it has products
with constant weights, whose sums are tested in other ways too."""
MOST_WORK = 1 << 27
"""The largest number of computed elements (for products: multiplications) for all runs of a kernel together."""

ANY = (-(1 << 31), 1 << 31)
ANYTHING = frozenset({"cast", "reshape", "transpose", "strided_slice", "concatenate", "equal", "greater", "less"})
"""Formulas that accept integers of any value."""


Known = dict[tuple[Place, int | None], Array]
"""Values of tensors by place and by the number of the call that wrote the tensor there (None if no call did), since
tensors share places at different times."""


class Sampler:
    """Draws random values for the tensors that a call reads. Where an earlier call without weights computes one of them
    (a maximum or a sum, for example), its formula is evaluated, so that the tensors of one run fit together."""

    def __init__(self, calls: Sequence[Call], rng: np.random.Generator):
        self.calls, self.rng = calls, rng

    def operands(self, call: Call, draw: Callable[[np.dtype, tuple[int, ...]], Array]) -> dict[int, Array]:
        """Random operands by argument number; `draw` returns random values of a type and shape."""
        return self._of(call, {}, draw)

    def _of(self, call: Call, known: Known, draw: Callable[..., Array]) -> dict[int, Array]:
        found: dict[int, Array] = {}
        for number, where in call.operands.items():
            form, writer = call.program.arguments[number], self._writer(call, where)
            place = (where, None if writer is None else writer.number)
            if place not in known and (span := span_of(call.program, number)) is not None:
                exponents = self.rng.integers(0, 33 if span == ANY else 1, form.shape)
                known[place] = (self.rng.integers(*span, form.shape) >> exponents).astype(form.dtype)
            elif place not in known:
                if writer is None or not has_dependent_operands(call) or not self._compute(writer, known, draw):
                    known[place] = draw(form.dtype, form.shape)
            found[number] = known[place].reshape(form.shape)
        return found

    def _writer(self, call: Call, place: Place) -> Call | None:
        """The call that last wrote this place before `call`; None if none did."""
        return next((each for each in reversed(self.calls[: call.number]) if place in each.results), None)

    def _compute(self, writer: Call, known: Known, draw: Callable[..., Array]) -> bool:
        """Compute the results of a call by its formula and add them to `known`; returns whether that was possible."""
        if writer.why or writer.weights or writer.projected or not worth_computing(writer):
            return False
        values = writer.program.evaluate({**writer.constants, **self._of(writer, known, draw)})
        for where, number in zip(writer.results, writer.program.results, strict=True):
            known[where, writer.number] = values[number]
        return True


def worth_computing(call: Call) -> bool:
    """Whether each result of a call has fewer elements than its largest operand, or elements of more than 8 bits. Such
    results are computed, since arbitrary values instead would not be realistic."""
    most = max((call.program.arguments[n].size for n in call.operands), default=0)
    forms = [call.program.forms[number] for number in call.program.results]
    return all(form.size < most or form.dtype.itemsize > 1 for form in forms)


def has_dependent_operands(call: Call) -> bool:
    """Whether random values that are drawn for each operand alone could be unrealistic, because the operands may depend
    on each other (such as a row and its sum): they have different shapes, or one has elements of more than 8 bits."""
    forms = [call.program.arguments[n] for n in call.operands]
    return len({form.shape for form in forms}) > 1 or any(form.dtype.itemsize > 1 for form in forms)


def span_of(program: Program, number: int) -> tuple[int, int] | None:
    """The range of random values for the argument `number`, if it is an integer of at least 32 bits. Indices get a
    range somewhat larger than the valid one; values that are only cast, moved or compared get the range `ANY`, all
    32-bit integers. Returns None for all other arguments."""
    form, span, same = program.arguments[number], ANY, {number}
    if form.dtype.kind not in "iu" or form.dtype.itemsize < 4:
        return None
    for row in program.rows:
        if row.formula == "take" and row.operands[1] in same:
            taken, axis = program.forms[row.operands[0]].shape, row.parameters.get("axis")
            size = prod(taken) if axis is None else taken[int(axis)]
            span = (-size, 2 * size)
        elif same & set(row.operands):
            if row.formula not in ANYTHING:
                return None
            same |= set(row.results)
    return span


def check(
    kernel: Kernel, part: Part, calls: Sequence[Call], weights: Mapping[int, Array], rng: np.random.Generator, bits: int
) -> None:
    """Run the kernel on random operands, compare its results with the claimed formula, and add to `part` what was
    tested. `weights`: the constant weights of products; `bits`: a difference that affects at least a certain share of
    all inputs is missed with a probability below 2^-bits; for integers without weights, the finding states the share.
    Raises NoTail if operands cannot be drawn, because the range of their values is not known, and Differs if a result
    is wrong."""
    call, program = kernel.call, kernel.call.program
    sampler = Sampler(calls, rng)
    sums = any(row.formula in ("nn.avg_pool2d", "sum") for row in program.rows)

    def evenly(dtype: np.dtype, shape: tuple[int, ...]) -> Array:
        if dtype.kind == "f":
            drawn = rng.standard_normal(shape) * 2.0 ** rng.integers(-4, 5)
            # no error bound can be derived from a sum whose terms cancel
            return (np.abs(drawn) if sums else drawn).astype(dtype)
        if dtype.itemsize > 2:
            raise NoTail("reads numbers whose range is not known")
        if dtype.kind == "b":
            return rng.integers(0, 2, shape).astype(dtype)
        info = np.iinfo(dtype)
        return rng.integers(int(info.min), int(info.max) + 1, shape).astype(dtype)

    def narrowly(dtype: np.dtype, shape: tuple[int, ...]) -> Array:
        if dtype.kind in "fb" or dtype.itemsize > 2:
            return evenly(dtype, shape)
        info = np.iinfo(dtype)
        low, high = np.sort(rng.integers(int(info.min), int(info.max) + 1, 2))
        return rng.integers(low, high + 1, shape).astype(dtype)

    work = sum(int(np.prod(program.forms[n].shape, dtype=np.int64)) for row in program.rows for n in row.results)
    work += sum(int(matrix.size) * kernel.results[0].size // max(matrix.shape[0], 1) for matrix in weights.values())
    most = PRODUCT_RUNS if weights else FLOAT_RUNS if program.floats else RUNS_PER_BIT * bits
    runs = int(max(2, min(most, MOST_WORK // max(work * 8, 1))))

    def run(draw: Callable[[np.dtype, tuple[int, ...]], Array]) -> None:
        given = sampler.operands(call, draw)
        for number, value in given.items():
            kernel.operands[number][...] = value
        values = program.evaluate({**call.constants, **weights, **given})
        expect(kernel, [values[number] for number in program.results], "for random codes")

    for _ in range(runs):
        run(evenly)
    for _ in range(max(runs // 4, 1)):
        run(narrowly)
    share = 1 - 2.0 ** (-bits / runs)
    if program.floats:
        part.say(kind_of(kernel, "tested"), f"{runs} runs with random numbers{bound_of(kernel)}")
    elif not weights:
        part.say(
            "tested",
            f"{runs} runs with random codes; a difference for {share:.2%} of all inputs or more is missed with a "
            f"probability below 2^-{bits}",
        )
    if program.floats:
        return
    if len(program.rows) == 1 and program.rows[0].formula in ("max", "nn.max_pool2d"):
        largest(kernel, part, rng, bits)
    elif program.rows[0].formula == "nn.avg_pool2d" and len(program.rows) == 1:
        averages(kernel, part, runs)


def largest(kernel: Kernel, part: Part, rng: np.random.Generator, bits: int) -> None:
    """Check a kernel that computes maxima. The kernel is run on data of which few elements, chosen at random, are above
    the lowest value, so an element that the code leaves out or adds changes a result after a few runs. If more runs are
    needed than there are elements, each element is tried alone."""
    program, (number,) = kernel.call.program, kernel.operands
    data, row, out = kernel.operands[number], program.rows[0], kernel.results[0]
    window: list[int] = row.parameters.get("pool_size") or [data.size // max(out.size, 1)]
    cells = max(prod(window), 2)
    chance = (1 - 1 / cells) ** cells / cells * 255 / 256
    pairs = log2(max(data.size * out.size, 1))
    runs, info = ceil((bits + pairs) / -log2(1 - chance)), np.iinfo(data.dtype)
    if data.size < runs:
        for at in range(data.size):
            data[...] = int(info.min)
            data.reshape(-1)[at] = int(info.max)
            expect(kernel, [program.evaluate({number: data})[program.results[0]]], "where one code alone is high")
        part.say(
            "proved",
            f"each of {data.size} elements alone is the largest of those results that are claimed to read it (assumes "
            "that a result is the largest of some elements)",
        )
        return
    runs = min(runs, 20000, max(64, MOST_WORK // max(data.size * 8, 1)))
    for _ in range(runs):
        codes = rng.integers(int(info.min) + 1, int(info.max) + 1, data.shape)
        data[...] = np.where(rng.random(data.shape) * cells < 1, codes, int(info.min))
        expect(kernel, [program.evaluate({number: data})[program.results[0]]], "for few codes that are not the lowest")
    reached = max(runs * -log2(1 - chance) - pairs, 0)
    part.say(
        "tested",
        f"{runs} runs with few codes above the lowest; an element that is left out or added is missed with a "
        f"probability below 2^-{reached:.0f} (assumes that a result is the largest of some elements)",
    )


def averages(kernel: Kernel, part: Part, runs: int) -> None:
    """Check a kernel that averages windows, and add the findings to `part`: for windows of fewer than 64 codes, a
    bound for the probability that the `runs` random runs before missed a wrong coefficient. If windows neither overlap
    nor have padding, also run the kernel on every possible sum of a window. Raises Differs if a result is wrong."""
    program, (number,) = kernel.call.program, kernel.operands
    data, p, out = kernel.operands[number], program.rows[0].parameters, kernel.results[0]
    window: list[int] = p["pool_size"]
    strides: list[int] = p.get("strides") or [1, 1]
    cells = prod(window)
    if cells < 64:
        bits = max(runs * log2(256 / (2 * cells - 1)) - log2(max(out.size * data.size, 1)), 0)
        part.say(
            "tested",
            f"a wrong coefficient of a mean of {cells} codes is missed in these runs with a probability below "
            f"2^-{bits:.0f} (assumes that sums are affine in the codes)",
        )
    single = out.shape[1] == out.shape[2] == 1
    apart = single or (strides[0] >= window[0] and strides[1] >= window[1])
    if not apart or any(p.get("padding") or ()):
        return
    sums, lowest = cells * 255 + 1, int(np.iinfo(data.dtype).min)
    place = np.arange(out.size).reshape(out.shape)
    for run in range(-(-sums // out.size)):
        total = (place + run * out.size) % sums
        each, more = total // cells, total % cells
        data[...] = lowest
        for cell in range(cells):
            i, j = divmod(cell, window[1])
            y = slice(i, i + (out.shape[1] - 1) * strides[0] + 1, strides[0])
            x = slice(j, j + (out.shape[2] - 1) * strides[1] + 1, strides[1])
            data[:, y, x] = lowest + each + np.greater(more, cell)
        expect(kernel, [program.evaluate({number: data})[program.results[0]]], "for a sum of a window")
    part.say("proved", f"all {sums} sums of a window are divided as claimed (assumes that windows are computed alike)")
