"""The rules of `fuse-ops`: which ops of a block become one kernel."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from xdsl.dialects.builtin import AnyFloat, FixedBitwidthType, IntegerType, Signedness, f32, i8
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import is_side_effect_free

from relay.dialects import relay
from relay.dialects.op import TensorOp, rank, shape, tensor
from relay.dialects.plug_in import has_lowering
from relay.target import GpuTarget, Target
from relay.target.record import UNKNOWN
from relay.transforms.expansions.matmul import has_few_rows
from relay.transforms.topological_order import topological_order

EXPENSIVE = (
    relay.DivideOp,
    relay.FloorDivideOp,
    relay.ExpOp,
    relay.LogOp,
    relay.SqrtOp,
    relay.RsqrtOp,
    relay.SigmoidOp,
    relay.TanhOp,
    relay.FixedPointMultiplyOp,
    relay.FixedPointReciprocalOp,
    relay.ModOp,
    relay.FloorModOp,
    relay.PowerOp,
    relay.SinOp,
    relay.CosOp,
    relay.TanOp,
    relay.AsinOp,
    relay.AcosOp,
    relay.AtanOp,
    relay.SinhOp,
    relay.CoshOp,
    relay.AsinhOp,
    relay.AcoshOp,
    relay.AtanhOp,
    relay.ErfOp,
    relay.Expm1Op,
    relay.Log2Op,
    relay.Log10Op,
)
"""Elementwise ops that are so expensive that their result is written to memory rather than computed twice."""


def fusible(op: Operation) -> bool:
    """Whether the op can be part of a kernel; constants and reshapes stay in the caller."""
    return (
        isinstance(op, TensorOp)
        and (op.name.startswith("relay.") or has_lowering(op))
        and not isinstance(op, relay.ConstantOp | relay.ReshapeOp)
    )


def elementwise(op: Operation) -> bool:
    """Whether each element of the result depends on one element of each operand. `relay.broadcast_to` counts, since its
    users broadcast as well."""
    return isinstance(op, TensorOp) and (op.ELEMENTWISE or isinstance(op, relay.BroadcastToOp)) and fusible(op)


def bits(value: SSAValue) -> int:
    """The width of an element in bits."""
    element = tensor(value).element_type
    return element.bitwidth if isinstance(element, FixedBitwidthType) else 64


def volume(value: SSAValue) -> int:
    """The size of the tensor in bits; unknown dimensions count as 1."""
    return bits(value) * prod(max(d, 1) for d in shape(value))


def variable(op: Operation) -> list[SSAValue]:
    """The operands that are not constants."""
    return [value for value in op.operands if not isinstance(value.owner, relay.ConstantOp)]


def users(value: SSAValue) -> list[Operation]:
    """The ops that use a value, without repetition."""
    return list(dict.fromkeys(use.operation for use in value.uses))


NORMS = (relay.LayerNormOp, relay.RmsNormOp)
"""Normalizations whose kernels also store the values that they normalize."""
OF_ROWS = (relay.DenseOp, relay.WeightOnlyDenseOp, relay.BatchMatmulOp, relay.SoftmaxOp, *NORMS)
"""Classes of anchors (the ops that determine how a kernel is computed) whose kernels may end in any number of
elementwise ops, even if these use the anchor's result or each other's several times (rule 4 of `Fusion`)."""
CONVOLUTIONS = (relay.Conv2dBase, relay.ConvBase)
"""Anchors whose kernels may end in cheap elementwise ops that use the anchor's result several times, such as leaky ReLU
and hard swish."""
CODES = {i8, IntegerType(8, Signedness.UNSIGNED)}
COPIES = 4
"""The largest number of users for which `recompute` copies an op; ops on single elements are copied for any number of
users."""


def recompute(block: Block) -> None:
    """Copy each cheap elementwise op for every user, where its operands are in memory anyway or are smaller than its
    result: reading narrow values twice is cheaper than writing and reading the widened ones."""
    for op in reversed(list(block.ops)):
        if not elementwise(op) or len(op.results) != 1 or len(users(op.results[0])) < 2:
            continue
        numbers = of_numbers(op) and prod(shape(op.results[0])) > 1
        if (len(users(op.results[0])) > COPIES and not numbers) or not recomputable(op, volume(op.results[0])):
            continue
        for user in users(op.results[0])[0 if numbers else 1 :]:
            copy, at = op.clone(), block.find_ancestor_op_in_block(user) if numbers else op
            assert at is not None
            block.insert_op_before(copy, at)  # kernels that are the same have the same order
            for index, operand in enumerate(user.operands):
                if operand is op.results[0]:
                    user.operands[index] = copy.results[0]
        if numbers:
            Rewriter.erase_op(op)


def of_numbers(op: Operation) -> bool:
    """Whether the op is elementwise, and all its non-constant operands have one element: for example the comparison of
    a constant vector with the current position."""
    return elementwise(op) and all(prod(shape(value)) == 1 for value in variable(op))


def recomputable(op: Operation, size: int) -> bool:
    """Whether the op's result can be recomputed by cheap elementwise ops from values that are in memory anyway, or have
    at most half of `size` bits."""
    if not elementwise(op) or isinstance(op, EXPENSIVE):
        return False
    if not all(elementwise(user) or reduces(user) for user in users(op.results[0])):
        return False
    return all(
        isinstance(value.owner, Block)
        or not fusible(value.owner)
        or len(users(value)) > 1
        or 2 * volume(value) <= size
        or (len(value.owner.results) == 1 and recomputable(value.owner, size))
        for value in variable(op)
    )


def reduces(op: Operation) -> bool:
    """Whether the op reads its operand row by row, so that the operand can be computed while it is read."""
    return isinstance(op, (relay.ReduceOp, *NORMS))


class Group:
    """Ops that become one kernel, or a single op that stays in the calling function. `anchor`: the op of the group that
    is not elementwise."""

    def __init__(self, op: Operation):
        self.ops = [op]
        self.fusible = fusible(op)
        self.anchor = None if elementwise(op) else op
        self.kind = "elementwise" if self.anchor is None else op.name.rsplit(".", 1)[-1]

    def is_product(self, target: Target) -> bool:
        """Whether the group's op that is not elementwise (its anchor) is a batched matrix product whose second operand
        the target's kernels pack at run time, or read for several rows at once."""
        op = self.anchor
        if not isinstance(op, relay.BatchMatmulOp) or op.transpose_a.value.data:
            return False
        rows, columns = shape(op.result)[-2:]
        kinds = {tensor(value).element_type for value in op.operands}
        if isinstance(target, GpuTarget):
            fits = kinds <= CODES or kinds == {f32}
            enough = rows >= target.costs.matrix_rows and columns >= target.costs.matrix_columns
            return fits and enough and rank(op.result) == 3
        costs = target.costs
        least = costs.packed_turned_columns if op.transpose_b.value.data else costs.packed_columns
        runs = kinds == {f32} or (kinds <= CODES and target.dot() is not None)
        return rank(op.result) == 3 and runs and rows >= target.packed_rows(kinds == {f32}) and columns >= least

    def attends(self, target: Target) -> bool:
        """Whether the group's op that is not elementwise (its anchor) can be in one kernel with a softmax. It must be a
        batched matrix product that `is_product` accepts, or one of float32 with few rows."""
        op = self.anchor
        few = isinstance(op, relay.BatchMatmulOp) and rank(op.result) == 3 and has_few_rows(op, target)
        return few or self.is_product(target)

    def outputs(self) -> list[OpResult]:
        """The values of the group that are used outside of it, in the order of their ops."""
        inside = set(self.ops)
        return [r for op in self.ops for r in op.results if any(use.operation not in inside for use in r.uses)]


class Fusion:
    """Groups the ops of a block, in program order:

    1. An elementwise op joins the group that computes an operand of the same shape as the op's result, if nothing else
    uses this operand, or if it is a layer normalization's result. Among several groups, one with an anchor (an op that
    is not elementwise) is preferred, then the latest.
    2. A group of elementwise ops that computes an operand of an elementwise op or reduction joins that op's group, if
    only that op's group uses its results, and one of these holds: the operand has the shape of the op's result; the op
    is a reduction; or all ops that join compute from constants and single numbers.
    3. If an elementwise op or a reduction is the only user of a value that another group with an anchor computes,
    elementwise ops at the end of the other group move to the op's group, so that the value stored between the two
    kernels has the fewest bits.
    4. If all users of a value are in one group of elementwise ops of the value's shape, that group joins the group that
    computes the value, provided that the latter's anchor is a product, a softmax or a layer normalization, or that it
    is a convolution of floats and neither group has an expensive op.

    An anchor never joins another anchor's group, except where the target keeps the scores of attention in scratch
    memory, or in registers: a softmax along rows joins the product of two stacks of computed matrices whose result only
    the softmax reads, and the product that multiplies the softmax's result by the values joins them if it is the only
    reader of that result. No step may make two groups depend on each other.
    """

    def __init__(self, block: Block, target: Target = UNKNOWN):
        self.order = {op: i for i, op in enumerate(block.ops)}
        self.of: dict[Operation, Group] = {}
        self.needs: dict[Group, set[Operation]] = {}
        self.level: dict[Group, int] = {}
        self.then: dict[Operation, Operation] = {}
        previous: Operation | None = None
        for op in self.order:
            self.of[op] = group = Group(op)
            self.needs[group] = set(self.producers(op))
            if not is_side_effect_free(op):
                if previous is not None:
                    self.needs[group].add(previous)
                    self.then[previous] = op
                previous = op
            self.raise_level(group)
            if fusible(op):
                self.place(op)
        if target.keeps_scores:
            for op in self.order:
                if isinstance(op, relay.SoftmaxOp):
                    self.attend(op, target)

    def groups(self) -> list[Group]:
        """The groups sorted so that each follows those that it depends on, otherwise by first op; the ops of a group
        are in program order."""
        groups = list(dict.fromkeys(self.of.values()))
        for group in groups:
            group.ops.sort(key=self.order.__getitem__)
        before = {group: {self.of[op] for op in self.needs[group]} - {group} for group in groups}
        return topological_order(before, lambda group: self.order[group.ops[0]])

    def producers(self, op: Operation) -> Iterator[Operation]:
        """The ops of this block whose results are used by the op, or by an op inside it."""
        for inner in op.walk():
            for value in inner.operands:
                if isinstance(value.owner, Operation) and value.owner in self.order:
                    yield value.owner

    def place(self, op: Operation) -> None:
        """Apply the rules of `Fusion` to one op, whose group has no other op yet: merge it with groups of ops before
        it, and move elementwise ops from the end of such groups to it."""
        if elementwise(op):
            hosts = {group for value in variable(op) if (group := self.host(value, op)) is not None}
            for host in sorted(hosts, key=self.preference, reverse=True):
                if self.merge(host, self.of[op]):
                    break
        if elementwise(op) or reduces(op):
            for value in variable(op):
                self.take_tail(value, op)
            for value in variable(op):
                if self.feeds_only(value, op):
                    self.merge(self.of[op], self.producing(value))
            for value in variable(op):
                self.join_all(value, op)

    def producing(self, value: SSAValue) -> Group | None:
        """The group that computes a value, if the group becomes a kernel; else None."""
        group = self.of.get(value.owner) if isinstance(value.owner, Operation) else None
        return group if group is not None and group.fusible else None

    def preference(self, group: Group) -> tuple[bool, int]:
        """A sort key that prefers groups with an anchor, and among them the latest."""
        return group.anchor is not None, max(self.order[op] for op in group.ops)

    def host(self, value: SSAValue, op: Operation) -> Group | None:
        """The group that computes the operand `value`, if the elementwise `op` may join it: `value` has the shape of
        the op's result, and is read by nothing else or is a layer normalization's result. Else None."""
        alone = users(value) == [op] or isinstance(value.owner, NORMS)
        return self.producing(value) if alone and shape(value) == shape(op.results[0]) else None

    def feeds_only(self, value: SSAValue, op: Operation) -> bool:
        """Whether the group that computes the operand `value` may join the op's group by rule 2 of `Fusion`: it is
        elementwise, and only the op's group uses its results."""
        group = self.producing(value)
        if group is None or group.anchor is not None:
            return False
        if not (reduces(op) or shape(value) == shape(op.results[0]) or all(map(of_numbers, group.ops))):
            return False
        inside = set(self.of[op].ops)
        outside = [user for output in group.outputs() for user in users(output) if user not in group.ops]
        return all(user in inside and (elementwise(user) or reduces(user)) for user in outside)

    def join_all(self, value: SSAValue, op: Operation) -> None:
        """By rule 4 of `Fusion`, merge the op's elementwise group with the group that computes `value`, if the op's
        group contains all users of this value."""
        source, target = self.producing(value), self.of[op]
        if source is None or target.anchor is not None or shape(value) != shape(op.results[0]):
            return
        if not (isinstance(source.anchor, OF_ROWS) or self.stays_cheap(source, target)):
            return
        if all(user in target.ops for user in users(value)):
            self.merge(source, target)

    def stays_cheap(self, source: Group, target: Group) -> bool:
        """Whether `target` may join a convolution's group `source` by rule 4 of `Fusion`: the convolution is one of
        floats, and neither group has an expensive op."""
        anchor = source.anchor
        floats = isinstance(anchor, CONVOLUTIONS) and isinstance(tensor(anchor.result).element_type, AnyFloat)
        return floats and not any(isinstance(op, EXPENSIVE) for op in source.ops + target.ops)

    def take_tail(self, value: SSAValue, op: Operation) -> None:
        """Apply rule 3 of the class's docstring. If `value` is computed by another group, which has an op that is not
        elementwise, and only `op` uses it, move elementwise ops from the end of that group to the group of `op`, so
        that the value stored between the two kernels has the fewest bits."""
        source, target = self.producing(value), self.of[op]
        if source is None or source is target or source.anchor is None or users(value) != [op]:
            return
        tail, narrowest, moved = list[Operation](), bits(value), list[Operation]()
        while isinstance(owner := value.owner, Operation) and elementwise(owner) and len(owner.results) == 1:
            tail.append(owner)
            inner = [v for v in variable(owner) if shape(v) == shape(value)]
            if len(inner) != 1 or self.producing(inner[0]) is not source or users(inner[0]) != [owner]:
                break
            value = inner[0]
            if bits(value) < narrowest:
                narrowest, moved = bits(value), list(tail)
        if not moved or self.depends(source, target):
            return
        for member in moved:
            source.ops.remove(member)
            target.ops.append(member)
            self.of[member] = target
        for group in (source, target):
            self.needs[group] = {producer for member in group.ops for producer in self.producers(member)}
        self.raise_level(source)
        self.raise_level(target)

    def attend(self, op: relay.SoftmaxOp, target: Target) -> None:
        """Join the groups of a softmax, of the product whose rows it reads, and of the product that weights values by
        its results."""
        group, sums = self.of[op], shape(op.result)
        products = [self.producing(value) for member in group.ops for value in variable(member)]
        scores = [each for each in dict.fromkeys(products) if each is not None and each.attends(target)]
        taken = [self.of[user] for output in group.outputs() for user in users(output) if user in self.of]
        values = [each for each in dict.fromkeys(taken) if each is not group]
        if len(scores) != 1 or len(values) != 1 or not values[0].attends(target) or scores[0] is values[0]:
            return
        given, results = scores[0].outputs(), group.outputs()
        if len(given) != 1 or len(results) != 1 or shape(given[0]) != sums or shape(results[0]) != sums:
            return
        if any(self.of.get(user) is not group for user in users(given[0])):
            return
        product = values[0].anchor
        if users(results[0]) != [product] or product is None or product.operands[0] is not results[0]:
            return
        few = isinstance(target, GpuTarget) or sums[-1] <= target.costs.most_keys
        if op.along_last and few and self.merge(scores[0], group, anchors=True):
            self.merge(scores[0], values[0], anchors=True)

    def merge(self, first: Group, second: Group | None, anchors: bool = False) -> bool:
        """Merge two groups and return True. Return False, and merge nothing, if both have an anchor and `anchors` is
        False, or if a third group would have to run between them."""
        both = first is not second and second is not None and None not in (first.anchor, second.anchor)
        if second is None or first is second or (both and not anchors):
            return False
        if self.depends(first, second, through=True) or self.depends(second, first, through=True):
            return False
        first.ops += second.ops
        if both:
            first.kind = "attention"
        elif second.anchor is not None:
            first.anchor, first.kind = second.anchor, second.kind
        self.needs[first] |= self.needs.pop(second)
        for op in second.ops:
            self.of[op] = first
        self.raise_level(first, max(self.level.pop(first), self.level.pop(second)))
        return True

    def raise_level(self, group: Group, least: int = 0) -> None:
        """Raise the group's level, a number that exceeds those of all groups on which the group depends, to at least
        `least`; then raise the levels of the groups that depend on it."""
        pending = [(group, least)]
        while pending:
            group, least = pending.pop()
            needed = {self.of[op] for op in self.needs[group]} - {group}
            level = max(least, *(1 + self.level[other] for other in needed), 0)
            if group not in self.level or self.level[group] < level:
                self.level[group] = level
                pending += [(other, 0) for op in group.ops for other in self.consumers(op) if other is not group]

    def consumers(self, op: Operation) -> Iterator[Group]:
        """The groups, among those made so far, that use a result of the op."""
        for result in op.results:
            for user in users(result):
                while user not in self.order and (parent := user.parent_op()) is not None:
                    user = parent
                if user in self.of:
                    yield self.of[user]
        later = self.then.get(op)
        if later is not None and later in self.of:
            yield self.of[later]

    def depends(self, last: Group, first: Group, through: bool = False) -> bool:
        """Whether `last` depends on a result of `first`; with `through`, only a dependence through a third group
        counts."""
        pending = [group for op in self.needs[last] if (group := self.of[op]) not in (first, last)]
        if not through and any(self.of[op] is first for op in self.needs[last]):
            return True
        seen, floor = {last}, self.level[first]
        while pending:
            group = pending.pop()
            if group is first:
                return True
            if group not in seen and self.level[group] > floor:
                seen.add(group)
                pending += [self.of[op] for op in self.needs[group]]
        return False
