"""Converts some ops of a block to another layout, and chooses for every other op whether to convert it too, such that
the fewest bits are transposed. Ops are divided into two sets, unchanged and converted: for some ops the set is fixed,
for the others a minimum cut of the data-flow graph finds it. A conversion that is only a reshape moves no elements and
costs almost nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from relay.dialects import relay
from relay.dialects.layout import Layout, steps
from relay.dialects.op import shape
from relay.transforms.fusion import volume
from relay.transforms.layouts.axes import Axes, Imaging
from relay.transforms.layouts.min_cut import ENDLESS, Cut
from relay.transforms.layouts.moving import Mover
from relay.transforms.layouts.rules import Rules

REGROUPED = 1
"""The cost of a conversion that is only a reshape and moves no elements, in the unit of `cost` (bits moved). It is not
0, so that a conversion is never chosen without need."""


def cost(value: SSAValue, source: Layout, target: Layout) -> int:
    """The cost, in bits moved, of converting a value to another layout."""
    if isinstance(value.owner, relay.ConstantOp):
        return 0
    if not any(kind == "transpose" for kind, _ in steps(shape(value), source, target)):
        return REGROUPED
    return REGROUPED + volume(value)


def convert_block(block: Block, wanted: Layout, pinned: Callable[[Imaging], bool], kept: Collection[Operation]) -> bool:
    """Convert ops of a block to the layout `wanted`: those for which `pinned` returns true, and those others whose
    conversion saves transposes; the ops in `kept` are not converted. Returns whether something changed."""
    rules = Rules(Axes(block), wanted)
    chosen = [
        op for op in block.ops if isinstance(op, Imaging) and op not in kept and pinned(op) and rules.possible(op)
    ]
    if not any(rules.changes(value) for op in chosen for value in (op.data, op.result)):
        return False
    converted = divide(block, rules, set(chosen), kept)
    Rewriting(block, rules, converted).run()
    return True


def divide(block: Block, rules: Rules, chosen: Collection[Operation], kept: Collection[Operation]) -> set[Operation]:
    """The ops to be computed in the wanted layout: those in `chosen`, none in `kept`, and the others as the minimum cut
    decides."""
    cut = Cut()
    nodes: dict[Operation, int] = {}
    for op in block.ops:
        if isinstance(op, relay.ConstantOp):
            continue
        nodes[op] = node = cut.node()
        if op in chosen:
            cut.cost(node, 1, ENDLESS)
        elif op in kept or not rules.possible(op):
            cut.cost(0, node, ENDLESS)
        elif isinstance(op, relay.TransposeOp | relay.ReshapeOp):
            cut.cost(node, 1, cost(op.input, rules.axes.of[op.input], rules.axes.of[op.result]))
    values = [*block.args, *(result for op in nodes for result in op.results)]
    for value in values:
        if rules.changes(value):
            readers = {nodes.get(use.operation, 0) for use in value.uses}
            price = cost(value, rules.axes.of[value], rules.target(value))
            divide_value(cut, nodes.get(value.owner, 0) if isinstance(value.owner, Operation) else 0, readers, price)
    sides = cut.side()
    return {op for op, node in nodes.items() if sides[node]}


def divide_value(cut: Cut, maker: int, readers: Collection[int], price: int) -> None:
    """Add to the graph the cost `price` of converting a value. `maker` is the node of the op that computes it,
    `readers` are those of the ops that read it; it is converted at most once, however many readers need the converted
    value."""
    some, every = cut.node(), cut.node()
    cut.cost(maker, some, price)
    cut.cost(every, maker, price)
    for reader in readers:
        cut.cost(some, reader, ENDLESS)
        cut.cost(reader, every, ENDLESS)


class Rewriting:
    """Rebuilds the ops `converted` of a block in their new layouts, in program order. Operands of all ops are converted
    to the layouts that the ops need, each value at most once per layout."""

    def __init__(self, block: Block, rules: Rules, converted: Collection[Operation]):
        self.block, self.rules, self.converted = block, rules, converted
        self.mover = Mover(block)
        self.values: dict[SSAValue, dict[Layout, SSAValue]] = {}
        self.current: Operation | None = None

    def run(self) -> None:
        old = list(self.block.ops)
        dead = list[Operation]()
        for op in old:
            self.mover.before = self.current = op
            if op not in self.converted or not op.results:
                self.stay(op)
                continue
            results = self.rules.convert(op, self.get, self.mover)
            for before, after in zip(op.results, results, strict=True):
                if after.name_hint is None:
                    after.name_hint = before.name_hint
                self.values[before] = {self.rules.target(before): after}
            dead.append(op)
        for op in reversed(dead):
            Rewriter.erase_op(op)

    def stay(self, op: Operation) -> None:
        """Keep an op unconverted, with operands in its old layouts."""
        for inner in op.walk():
            for index, value in enumerate(inner.operands):
                if value in self.values and (known := self.rules.axes.of.get(value)) is not None:
                    inner.operands[index] = self.get(value, known)

    def get(self, value: SSAValue, layout: Layout) -> SSAValue:
        """A value in a layout; it is converted before the current op if this was not done yet."""
        known = self.rules.axes.of[value]
        forms = self.values.setdefault(value, {known: value})
        if layout not in forms:
            assert self.current is not None
            source, given = next(iter(forms.items()))
            at = value.owner if isinstance(value.owner, Operation) else self.current
            forms[layout] = self.mover.move(given, steps(shape(given), source, layout), at)
        return forms[layout]
