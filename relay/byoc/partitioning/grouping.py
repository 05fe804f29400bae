"""Grouping the ops of a block into regions: groups are merged along edges as long as no group depends on itself."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation
from xdsl.traits import IsTerminator, is_side_effect_free

from relay.byoc.partitioning import bodies
from relay.byoc.partitioning.scope import captured, eligible, source
from relay.dialects import byoc
from relay.dialects.relay import ConstantOp
from relay.errors import InvalidArgument
from relay.transforms.dead_ops import erase_dead
from relay.transforms.location import place
from relay.transforms.topological_order import topological_order


def labels(block: Block) -> dict[Operation, StringAttr]:
    """Map each annotated op of a block to its compiler. Annotated ops are those between `compiler_begin` and
    `compiler_end` ops.

    Raises InvalidArgument, naming the op, if an op lies in the regions of two compilers.
    """
    found: dict[Operation, StringAttr] = {}
    work: list[tuple[Operation, StringAttr]] = []
    for op in block.ops:
        if isinstance(op, byoc.CompilerBeginOp):
            work += [(user, op.compiler) for use in op.result.uses if (user := use.operation).parent is block]
        elif isinstance(op, byoc.CompilerEndOp) and isinstance(op.input.owner, Operation):
            work.append((op.input.owner, op.compiler))
    while work:
        op, compiler = work.pop()
        if op.parent is not block or not eligible(op):
            continue
        if op in found:
            if found[op] != compiler:
                what = f"lies in a region of {found[op].data} and in one of {compiler.data}"
                raise InvalidArgument(place(op), what, "put a compiler_end and a compiler_begin between them")
            continue
        found[op] = compiler
        work += [(value.owner, compiler) for value in op.operands if isinstance(value.owner, Operation)]
        work += [(use.operation, compiler) for result in op.results for use in result.uses]
    return found


class Grouping:
    """The ops of a block, partitioned into groups; `merge` enlarges the groups of annotated ops.

    Groups are identified by index. `reach[g]` has a bit for every group that depends on g, directly or not, and
    `before[g]` one for every group on which g depends. After a merge, masks may still contain the bit of the
    absorbed group, which is read as the group that absorbed it. The bit of a group that still exists is set exactly if
    the dependence exists.
    """

    def __init__(self, block: Block, parts: Mapping[Operation, int] | None = None):
        """`parts` numbers annotated ops: ops with different numbers are not grouped together, and an annotated op
        without a number is treated as not annotated."""
        self.block, self.parts = block, parts
        self.labels = {op: name for op, name in labels(block).items() if parts is None or op in parts}
        self.ops = [op for op in block.ops if not isinstance(op, byoc.Boundary) and not op.has_trait(IsTerminator)]
        self.number = {op: i for i, op in enumerate(self.ops)}
        self.group = list(range(len(self.ops)))
        self.members: dict[int, list[int]] = {i: [i] for i in self.group}
        self.next: list[dict[int, None]] = [{} for _ in self.group]
        self.previous: list[dict[int, None]] = [{} for _ in self.group]
        self.direct: list[tuple[int, int]] = []
        self.edges: list[tuple[int, int]] = []
        self._connect()
        self.reach = [0] * len(self.ops)
        self.before = [0] * len(self.ops)
        for i in reversed(self.group):
            for j in self.next[i]:
                self.reach[i] |= 1 << j | self.reach[j]
        for i in self.group:
            for j in self.previous[i]:
                self.before[i] |= 1 << j | self.before[j]

    def _connect(self) -> None:
        """Add edges from producers to users, and between consecutive ops with side effects, whose order must stay."""
        last: int | None = None
        for user, op in enumerate(self.ops):
            for value in captured(op):
                owner = source(value).owner
                producer = self.block.find_ancestor_op_in_block(owner) if isinstance(owner, Operation) else None
                if producer is None or producer is op:
                    continue
                self._edge(self.number[producer], user)
                if self.together(producer, op):
                    self.edges.append((self.number[producer], user))
                    if source(value) is value:
                        self.direct.append((self.number[producer], user))
            if not is_side_effect_free(op):
                if last is not None:
                    self._edge(last, user)
                last = user

    def together(self, a: Operation, b: Operation) -> bool:
        """Whether the two ops may be in one group."""
        part = self.parts or {}
        return self.labels.get(a) == self.labels.get(b) is not None and part.get(a) == part.get(b)

    def regions(self) -> list[list[Operation]]:
        """The ops of each group of annotated ops, in program order."""
        found = [[self.ops[number] for number in sorted(members)] for members in self.members.values()]
        return [ops for ops in found if ops[0] in self.labels]

    def _edge(self, producer: int, user: int) -> None:
        self.next[producer][user] = None
        self.previous[user][producer] = None

    def merge(self, edges: list[tuple[int, int]]) -> None:
        """Merge the groups at the ends of these edges until no more can be merged."""
        changed = True
        while changed:
            changed = False
            for producer, user in edges:
                a, b = self.group[producer], self.group[user]
                if a != b and self.mergeable(a, b):
                    self.join(a, b)
                    changed = True

    def mergeable(self, a: int, b: int) -> bool:
        """Whether there is no path from group a through another group to group b, so that merging makes no cycle."""
        return not any(self.reach[c] >> b & 1 for c in self.next[a] if c != b)

    def join(self, a: int, b: int) -> None:
        """Merge group b, which uses results of group a, into a."""
        for member in self.members[b]:
            self.group[member] = a
        self.members[a] += self.members.pop(b)
        for c in self.next[b]:
            del self.previous[c][b]
            self._edge(a, c)
        for c in self.previous[b]:
            del self.next[c][b]
            if c != a:
                self._edge(c, a)
        self.next[b], self.previous[b] = {}, {}
        first, second = 1 << a, 1 << b
        gained = self.before[b] & ~(self.before[a] | first)
        for c in self.groups(gained):
            self.reach[c] |= self.reach[a] | first
        if gained:
            for c in self.groups(self.reach[a] & ~(self.reach[b] | second)):
                self.before[c] |= gained
        self.reach[a] = (self.reach[a] | self.reach[b]) & ~(first | second)
        self.before[a] = (self.before[a] | self.before[b]) & ~(first | second)

    def groups(self, bits: int) -> list[int]:
        """The distinct indices of the groups in a bit mask. Bit n stands for group n or, if that group was merged into
        another one, for the group that absorbed it."""
        found: dict[int, None] = {}
        while bits:
            lowest = bits & -bits
            found[self.group[lowest.bit_length() - 1]] = None
            bits ^= lowest
        return list(found)

    def emit(self) -> None:
        """Replace each group of annotated ops by a region; the block's ops keep their order as far as possible."""
        bodies.drop_boundaries(self.block)
        if not self.labels:
            return
        for members in self.members.values():
            members.sort()
        order: list[Operation] = []
        regions: list[tuple[int, list[Operation]]] = []
        for g in topological_order({g: self.previous[g] for g in self.members}, lambda g: self.members[g][-1]):
            ops = [self.ops[i] for i in self.members[g]]
            if ops[0] in self.labels and bodies.results_used_outside(ops):
                regions.append((len(order), ops))
                order.append(ops[-1])
            else:
                order += ops
        end = self.block.last_op
        for position, ops in regions:
            order[position] = bodies.enclose(byoc.RegionOp, ops, {"compiler": self.labels[ops[0]]})
        for op in list(self.block.ops):
            op.detach()
        self.block.add_ops([*order, end] if end is not None and end not in order else order)
        erase_dead(self.block.ops, ConstantOp)
