"""Check kernels that compute each element from the elements at the same position: every quantized value, or every pair
of values, is tried."""

from __future__ import annotations

import numpy as np

from relay.runtime.memory import Array
from relay.validation.contraction import RELATIVE, Differs
from relay.validation.formulas import POINTWISE
from relay.validation.machine_code import Kernel
from relay.validation.report import Part
from relay.validation.tail import NoTail

SMALL = 2.0**-8
"""The error of a float is divided by the magnitude of the expected number, or by this share of the largest expected
magnitude, whichever is larger."""
MOST_ELEMENTS = 1 << 25
"""About how many results the runs of one kernel may compute in total. If trying every value of an operand at every
element needs more, or every pair of values at several elements, each value or pair is tried at fewer elements."""


def check(kernel: Kernel, part: Part) -> None:
    """Run the kernel on every value of its 8- or 16-bit operand, or every pair of values of its two 8-bit operands, and
    compare the results with the claimed formula. Each value or pair is tried at every element, or at some of them if
    that is too much work. Adds the finding to `part`. Raises NoTail if the kernel is not of this form, Differs if a
    result is wrong."""
    call, program = kernel.call, kernel.call.program
    if not program.rows or any(row.formula not in POINTWISE for row in program.rows):
        raise NoTail("is not pointwise")
    shapes = {each.shape for each in [*kernel.operands.values(), *kernel.results]}
    if len(shapes) != 1 or any(each.dtype.kind not in "iu" for each in kernel.operands.values()):
        raise NoTail("has tensors of several shapes, or of floats")
    (shape,) = shapes
    widths = sorted(each.dtype.itemsize for each in kernel.operands.values())
    if widths not in ([1], [2], [1, 1]):
        raise NoTail("has operands of too many bits to try them all")
    axes = {row.parameters["axis"] % max(len(shape), 1) for row in program.rows if "axis" in row.parameters}
    constants = [*call.constants.values(), *program.values.values()]
    per_channel = any(each.size > 1 and row_vector(each, shape) for each in constants)
    if axes - {len(shape) - 1} and per_channel:
        raise NoTail("has parameters along another axis than the last")
    channels = shape[-1] if shape and per_channel else 1
    place = np.arange(int(np.prod(shape, dtype=np.int64)))
    channel = (place % channels).reshape(shape)
    if len(widths) == 1:
        table, (number,) = unary(kernel, channels), kernel.operands
        operand, count = kernel.operands[number], 256 ** widths[0]
        runs = (
            count
            if place.size <= MOST_ELEMENTS // count
            else max(-(-count * 4 // place.size), MOST_ELEMENTS // place.size)
        )
        for run in range(runs):
            codes = ((place + run) if runs == count else (place + run * place.size)) % count
            operand.reshape(-1)[:] = codes.astype(np.int64) + int(np.iinfo(operand.dtype).min)
            expect(kernel, [each[codes.reshape(shape), channel] for each in table], "for a code")
        if runs == count:
            text = f"all {count} codes at each of {place.size} elements"
        else:
            text = f"all {count} codes, each at {runs * place.size // count} elements or more"
        text += " (assumes that an element depends on those at its place only)"
        part.say(kind_of(kernel, "proved"), text + bound_of(kernel))
        part.complete = True
        return
    if channels > 1:
        raise NoTail("is a function of two codes for each channel")
    first, second = kernel.operands
    codes = np.arange(256)
    lowest = [int(np.iinfo(kernel.operands[number].dtype).min) for number in (first, second)]
    pair = {
        first: (codes + lowest[0]).astype(kernel.operands[first].dtype)[:, None],
        second: (codes + lowest[1]).astype(kernel.operands[second].dtype)[None, :],
    }
    values = program.evaluate({**call.constants, **pair})
    tables = [np.broadcast_to(values[number], (256, 256)) for number in program.results]
    rounds = -(-65536 // place.size)
    times = max(1, min(16, MOST_ELEMENTS // (rounds * place.size)))
    for run in range(rounds * times):
        at = (place + run * place.size + run // rounds * 257) & 65535
        left, right = (at >> 8).reshape(shape), (at & 255).reshape(shape)
        kernel.operands[first][...] = left + lowest[0]
        kernel.operands[second][...] = right + lowest[1]
        expect(kernel, [table[left, right] for table in tables], "for a pair of codes")
    part.say(
        kind_of(kernel, "proved"),
        f"all 65536 pairs of codes, {times} times at other elements (assumes that an element depends on those at its "
        f"place only, and that elements are computed alike){bound_of(kernel)}",
    )
    part.complete = True


def row_vector(each: Array, shape: tuple[int, ...]) -> bool:
    """Whether an array is a vector along the last axis of this shape."""
    return bool(shape) and each.ndim == 1 and each.shape[0] == shape[-1]


def unary(kernel: Kernel, channels: int) -> list[Array]:
    """The results that the claim gives for every value of the kernel's only operand: an array [values, channels] for
    each result of the kernel."""
    program, (number,) = kernel.call.program, kernel.operands
    dtype = kernel.operands[number].dtype
    count = 256**dtype.itemsize
    lowest = int(np.iinfo(dtype).min)
    codes = np.arange(lowest, lowest + count, dtype=dtype)
    column = np.ascontiguousarray(np.broadcast_to(codes[:, None], (count, channels)))
    try:
        values = program.evaluate({**kernel.call.constants, number: column})
        return [np.broadcast_to(values[result], (count, channels)) for result in program.results]
    except ValueError:
        raise NoTail("has parameters of other shapes") from None


def expect(kernel: Kernel, expected: list[Array], when: str) -> None:
    """Run the kernel, and raise Differs if a result is not the expected one; `when` describes the run in the message.
    Floats may be off by `RELATIVE`, and integers that are computed with floats by one."""
    kernel.run()
    for result, wanted in zip(kernel.results, expected, strict=True):
        same = (result == wanted) | ((result != result) & (wanted != wanted))
        if same.all():
            continue
        if kernel.call.program.floats:
            off = np.abs(result.astype(np.float64) - wanted.astype(np.float64))
            if result.dtype.kind == "f":
                largest = np.max(np.abs(wanted), initial=0, where=np.isfinite(wanted))
                off = off / np.maximum(np.abs(wanted.astype(np.float64)), largest * SMALL)
            same |= off <= (RELATIVE if result.dtype.kind == "f" else 1)
            kernel.off = max(kernel.off, float(np.max(off, initial=0, where=np.isfinite(off))))
        if not same.all():
            at = tuple(int(n) for n in np.argwhere(~same)[0])
            raise Differs(
                f"{int((~same).sum())} of {result.size} results differ {when}; the first at {list(at)}: "
                f"{result[at]}, not {wanted[at]}"
            )


def kind_of(kernel: Kernel, kind: str) -> str:
    """The kind of a line of the report: `kind`, or "compared" if results of the kernel were not equal to those expected
    but within the accepted bound."""
    return "compared" if kernel.off else kind


def bound_of(kernel: Kernel) -> str:
    """A text for the finding that says how far results were off; empty if they were exact."""
    return f"; floats are off by {kernel.off:.1e} at most, relative or in codes" if kernel.off else ""
