"""Computes by how many bytes the result of a kernel must precede an input that it overlaps, so that nothing is
overwritten before it is read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import DenseArrayBase
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.utils.hints import isa

from relay.dialects.attributes import dtype_of, int_values, ints
from relay.dialects.op import is_integer
from relay.lowering.builder import Before
from relay.lowering.linalg.emitter import number
from relay.lowering.scheduling.work import range_of
from relay.lowering.shaped import VIEWS, buffer_of, is_vector, layout, root, size_of
from relay.lowering.walking import walked

READS = ("memref.load", "vector.load", "vector.maskedload")
WRITES = ("memref.store", "vector.store", "vector.maskedstore")
OVERLAPPING = "relay.overlapping"
"""A kernel's attribute with the numbers of arguments that may overlap other arguments, `array<i64: ...>`."""


def overlapping(function: Operation) -> frozenset[int]:
    """Return the numbers of a kernel's arguments that may overlap each other."""
    found = function.attributes.get(OVERLAPPING)
    return frozenset(int_values(found) if isa(found, DenseArrayBase) else ())


@dataclass(frozen=True)
class Linear:
    """A linear form: `constant` plus multiples of induction variables."""

    constant: int
    terms: Mapping[SSAValue, int]

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """Return this form plus `factor` times another one."""
        variables = {**self.terms, **other.terms}
        terms = {each: self.terms.get(each, 0) + factor * other.terms.get(each, 0) for each in variables}
        return Linear(self.constant + factor * other.constant, terms)

    def of(self, loop: scf.ForOp) -> int:
        """Return the coefficient of a loop's induction variable in this form; 0 if the variable does not occur."""
        return self.terms.get(loop.body.block.args[0], 0)


@dataclass(frozen=True)
class Access:
    """An access of an operation to an argument's memory: `size` bytes from offset `start` on, which is linear in the
    loop variables. `step`: the operation's position in the function's text; `loops`: the loops around the operation,
    the outermost first."""

    start: Linear
    size: int
    step: int
    loops: tuple[scf.ForOp, ...]


def distance(function: FuncOp, read: int, written: int) -> int:
    """Return by how many bytes the argument `written` has to start before the argument `read`, at least, so that
    nothing is written where something is read later: the maximum of the end of each write minus the start of each later
    read.

    It is negative if each write ends, as an offset in `written`, before the offset in `read` at which every later read
    starts. It is the size of `written` if some accesses cannot be analysed, or one operation accesses both. An access
    whose address is unknown counts as an access to the whole argument, and an access in a branch as if the branch were
    always taken.
    """
    numbers = {op: step for step, op in enumerate(walked(function))}
    source, target = (function.body.block.args[n] for n in (read, written))
    reads, writes = accesses(source, numbers, READS), accesses(target, numbers, WRITES)
    if reads is None or writes is None or {each.step for each in reads} & {each.step for each in writes}:
        return size_of(buffer_of(target))
    found = [bound for write, later in product(writes, reads) for bound in behind(write, later)]
    return max(found, default=-size_of(buffer_of(source)))


def overlap(function: FuncOp, reads: Collection[int], writes: Collection[int]) -> None:
    """Declare, in the attribute `relay.overlapping` of a kernel, that arguments that it reads and arguments that it
    writes may overlap in memory. `reads` and `writes`: the numbers of these arguments. Loads from `reads` with
    loop-invariant addresses are hoisted out of loops here: LLVM, which must expect writes to these addresses, would
    repeat the loads in each iteration."""
    function.attributes[OVERLAPPING] = ints(sorted(overlapping(function).union(reads, writes)))
    sources = [function.body.block.args[n] for n in reads]
    for loop in [op for op in walked(function) if isinstance(op, scf.ForOp) and runs(op)][::-1]:
        for op in list(loop.body.block.ops):
            read = op.name in READS and root(op.operands[0]) in sources
            if not read and not isinstance(op, arith.AddiOp | arith.MuliOp):
                continue
            if not any(loop.is_ancestor(value.owner) for value in op.operands):
                op.detach()
                Before(loop).add(op)


def runs(loop: scf.ForOp) -> bool:
    """Whether the loop is known to have at least one iteration."""
    return bool(range_of(loop))


def behind(write: Access, read: Access) -> Iterator[int]:
    """For all pairs of iterations in which the write precedes the read, yield upper bounds of the end of the write
    minus the start of the read, in bytes: how far the write reaches into what is still to be read."""
    shared = [loop for loop, other in zip(write.loops, read.loops, strict=False) if loop is other]
    gap = write.start.constant + write.size - read.start.constant
    for depth in range(len(shared) + 1):
        total, inner = gap, depth
        for loop in shared[:depth]:
            total += most(loop, write.start.of(loop) - read.start.of(loop))
        if depth < len(shared):
            first, last, step = turns(shared[depth])
            if last <= first:
                continue
            ends = ((first, first + step), (first, last), (last - step, last))
            a, b = write.start.of(shared[depth]), read.start.of(shared[depth])
            total, inner = total + max(a * early - b * late for early, late in ends), depth + 1
        elif write.step >= read.step:
            continue
        total += sum(most(loop, write.start.of(loop)) for loop in write.loops[inner:])
        yield total + sum(most(loop, -read.start.of(loop)) for loop in read.loops[inner:])


def most(loop: scf.ForOp, times: int) -> int:
    """Return the largest value of the loop variable times a number."""
    first, last, _ = turns(loop)
    return max(times * first, times * last)


def turns(loop: scf.ForOp) -> tuple[int, int, int]:
    """Return the first and last value of a loop's variable, and the step. If the bounds are computed at run time,
    return (0, 1, 1), which stands for an unknown number of iterations; no address that depends on the variable of such
    a loop is analysed."""
    if (found := range_of(loop)) is None:
        return 0, 1, 1
    return found.start, found.start + (len(found) - 1) * found.step, found.step


def accesses(argument: SSAValue, numbers: Mapping[Operation, int], kind: Sequence[str]) -> list[Access] | None:
    """Return the accesses to an argument by operations with the names `kind` (`READS` or `WRITES`), and by operations
    that may both read and write. None if one is in a region other than a loop or branch, or the argument is used in a
    way that cannot be followed. `numbers`: the position of each operation in the function's text."""
    found: list[Access] = []
    for use in argument.uses:
        op = use.operation
        if isinstance(op, VIEWS):
            if (inside := accesses(op.results[0], numbers, kind)) is None:
                return None
            found += inside
            continue
        if op.name not in (*READS, *WRITES) and (op.results or op.regions or op.next_op is None):
            return None
        loops, holder = list[scf.ForOp](), op.parent_op()
        while isinstance(holder, scf.ForOp | scf.IfOp):
            loops += [holder] if isinstance(holder, scf.ForOp) else []
            holder = holder.parent_op()
        if not isinstance(holder, FuncOp):
            return None
        if op.name in kind or op.name not in (*READS, *WRITES):
            start, size = place(op, argument)
            found.append(Access(start, size, numbers[op], tuple(loops[::-1])))
    return found


def place(op: Operation, buffer: SSAValue) -> tuple[Linear, int]:
    """Return the first byte of the argument that an op accesses, and the number of bytes; the whole buffer if
    unknown."""
    type = buffer_of(buffer)
    strides, offset = layout(type)
    size = dtype_of(type.element_type).itemsize
    at = list(op.operands).index(buffer) + 1
    reach = sum(stride * (extent - 1) for stride, extent in zip(strides, type.get_shape(), strict=True)) + 1
    unknown = Linear(offset * size, {}), reach * size
    if op.name not in (*READS, *WRITES) or scalar_bits(type.element_type) != 8 * size:
        return unknown
    start = Linear(offset * size, {})
    for index, stride in zip(op.operands[at : at + len(strides)], strides, strict=True):
        if (term := linear(index)) is None:
            return unknown
        start = start.plus(term, stride * size)
    touched = op.results[0] if op.results else op.operands[0 if at > 1 else -1]
    lanes = touched.type.get_shape()[0] if is_vector(touched.type) else 1
    return start, lanes * size


def scalar_bits(type: Attribute) -> int:
    """Return the bits of an element; elements of less than a byte may share one."""
    return type.width.data if is_integer(type) else 8 * dtype_of(type).itemsize


def linear(value: SSAValue) -> Linear | None:
    """Return an index as a linear form of induction variables with known bounds; None for any other index."""
    if isinstance(value, BlockArgument):
        loop = value.block.parent_op()
        known = isinstance(loop, scf.ForOp) and value.index == 0 and number(loop.lb) is not None
        known = known and isinstance(loop, scf.ForOp) and number(loop.ub) is not None
        return Linear(0, {value: 1}) if known else None
    if isinstance(constant := number(value), int):
        return Linear(constant, {})
    if not isinstance(op := value.owner, arith.AddiOp | arith.SubiOp | arith.MuliOp):
        return None
    left, right = linear(op.lhs), linear(op.rhs)
    if left is None or right is None:
        return None
    if not isinstance(op, arith.MuliOp):
        return left.plus(right, 1 if isinstance(op, arith.AddiOp) else -1)
    left, right = (right, left) if right.terms else (left, right)
    return None if right.terms else Linear(0, {}).plus(left, right.constant)
