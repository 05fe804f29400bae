"""Matrix products as numpy's `matmul`, and tensor products by an equation as numpy's `einsum`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.op import DYNAMIC
from relay.frontend.importing.tensors import TensorBuilder


def product(importer: TensorBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    """`a @ b` as numpy's matmul. If b is a single matrix, a stack of matrices a is reshaped to one matrix with the rows
    of all, so that one product suffices. Integers of 32 bits and more are multiplied elementwise and summed."""
    if importer.rank(a) == 1:
        found = product(importer, importer.reshape(a, [1, *importer.shape(a)]), b)
        return importer.call(relay.SqueezeOp, found, axis=[importer.rank(found) - (2 if importer.rank(b) > 1 else 1)])
    if importer.rank(b) == 1:
        found = product(importer, a, importer.reshape(b, [*importer.shape(b), 1]))
        return importer.call(relay.SqueezeOp, found, axis=[importer.rank(found) - 1])
    element = importer.element(a)
    if not importer.is_float(a):
        left = importer.call(relay.ExpandDimsOp, a, axis=importer.rank(a))
        right = importer.call(relay.ExpandDimsOp, b, axis=importer.rank(b) - 2)
        found = importer.call(relay.MultiplyOp, left, right)
        return importer.call(relay.SumOp, found, axis=[importer.rank(found) - 2])
    dims = importer.shape(a)
    if importer.rank(b) == 2:
        if len(dims) == 2:
            return importer.call(relay.MatmulOp, a, b, out_dtype=element)
        if DYNAMIC not in dims:
            rows = importer.reshape(a, [prod(dims[:-1]), dims[-1]])
            found = importer.call(relay.MatmulOp, rows, b, out_dtype=element)
            return importer.reshape(found, [*dims[:-1], importer.shape(b)[1]])
    return importer.call(relay.BatchMatmulOp, a, b, transpose_b=False, out_dtype=element)


def scaled(importer: TensorBuilder, value: SSAValue, factor: float) -> SSAValue:
    return value if factor == 1.0 else importer.call(relay.MultiplyOp, value, importer.like(factor, value))


def einsum(importer: TensorBuilder, equation: str, values: Sequence[SSAValue]) -> SSAValue:
    """numpy's einsum of operands with known sizes: two operands become a batch of matrix products; more are aligned on
    all axes of the equation, multiplied, and summed over the axes that the result lacks."""
    given, _, wanted = equation.replace(" ", "").partition("->")
    terms = given.split(",")
    if len(terms) != len(values):
        raise importer.at.malformed(f"the equation {equation!r} has {len(terms)} operands, not {len(values)}")
    for value in values:
        importer.static(value)
    free = iter("ABCDEFGHIJKLMNOPQRSTUVWXYZ".translate(str.maketrans("", "", given + wanted)))
    hidden = max(importer.rank(v) - len(t.replace("...", "")) for t, v in zip(terms, values, strict=True))
    dots = "".join(next(free) for _ in range(hidden)) if "..." in given else ""
    letters: list[str] = []
    for term, value in zip(terms, values, strict=True):
        own = importer.rank(value) - len(term.replace("...", ""))
        letters.append(term.replace("...", dots[len(dots) - own :]))
        if len(letters[-1]) != importer.rank(value):
            raise importer.at.malformed(f"the operand {term!r} is of rank {importer.rank(value)}")
    if "->" not in equation:
        once = [each for each in sorted({*"".join(letters)} - {*dots}) if "".join(letters).count(each) == 1]
        wanted = dots + "".join(once)
    wanted = wanted.replace("...", dots)
    diagonal = [_diagonal(importer, value, term) for value, term in zip(values, letters, strict=True)]
    value, term = diagonal[0]
    for number, (other, its) in enumerate(diagonal[1:], 2):
        later = {*wanted, *"".join(each for _, each in diagonal[number:])}
        value, term = _contracted(importer, value, term, other, its, later)
    gone = [axis for axis, each in enumerate(term) if each not in wanted]
    if gone:
        value = importer.call(relay.SumOp, value, axis=gone)
        term = "".join(each for each in term if each in wanted)
    return importer.transpose(value, [term.index(each) for each in wanted])


def _diagonal(importer: TensorBuilder, value: SSAValue, term: str) -> tuple[SSAValue, str]:
    """An operand whose axes with the same letter in `term` are replaced by their diagonal, and the term without
    repeated letters."""
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            first, second = term.index(letter), term.rindex(letter)
            order = [axis for axis in range(len(term)) if axis not in (first, second)] + [first, second]
            value = importer.transpose(value, order)
            dims = importer.shape(value)
            size = dims[-1]
            value = importer.reshape(value, [*dims[:-2], size * size])
            value = importer.take(value, np.arange(size, dtype=np.int64) * (size + 1), len(dims) - 2)
            term = "".join(term[axis] for axis in order[:-1])
    return value, term


def _contracted(
    importer: TensorBuilder, a: SSAValue, left: str, b: SSAValue, right: str, later: set[str]
) -> tuple[SSAValue, str]:
    """The product of two operands, whose axes have the letters `left` and `right`, summed over the letters that are not
    in `later`; and the letters of its axes."""
    shared = [each for each in left if each in right]
    batch = [each for each in shared if each in later]
    inner = [each for each in shared if each not in later]
    rows = [each for each in left if each not in right]
    columns = [each for each in right if each not in left]
    sizes = dict(zip(left, importer.shape(a), strict=True))
    for letter, size in zip(right, importer.shape(b), strict=True):
        sizes[letter] = max(size, sizes.get(letter, 1))
    a = _arranged(importer, a, left, [*batch, *rows, *inner], sizes)
    b = _arranged(importer, b, right, [*batch, *inner, *columns], sizes)

    def count(letters: list[str]) -> int:
        return prod(sizes[letter] for letter in letters)

    outer = [sizes[letter] for letter in batch]
    a = importer.reshape(a, [*outer, count(rows), count(inner)])
    b = importer.reshape(b, [*outer, count(inner), count(columns)])
    found = product(importer, a, b)
    names = [*batch, *rows, *columns]
    return importer.reshape(found, [sizes[letter] for letter in names]), "".join(names)


def _arranged(
    importer: TensorBuilder, value: SSAValue, term: str, letters: list[str], sizes: dict[str, int]
) -> SSAValue:
    """The operand, whose axes have the letters of `term`, with its axes in the order of `letters`; axes of size 1 are
    repeated to the size in `sizes`."""
    value = importer.transpose(value, [term.index(letter) for letter in letters])
    return importer.broadcast(value, [sizes[letter] for letter in letters])
