"""Random modules of integers, random compilers, and their partitioning, from one source of choices."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256

from xdsl.ir import Operation

from relay.byoc import registry
from relay.byoc.partitioning.annotate_target import AnnotateTarget
from relay.byoc.partitioning.inline_partitions import InlinePartitions
from relay.byoc.partitioning.merge_compiler_regions import MergeCompilerRegions
from relay.byoc.partitioning.merge_composite import MergeComposite
from relay.byoc.partitioning.partition_graph import PartitionGraph
from relay.byoc.partitioning.prune_regions import PruneRegions
from relay.byoc.patterns import Entry, is_constant, is_elementwise, is_op, wildcard
from relay.module import IRModule
from tests.unit.interpreting import as_text
from tests.unit.partitioning_modules import INTEGERS, Known, module

Choose = Callable[[int], int]
"""A number below the one given."""

KINDS = {"add": 2, "subtract": 2, "multiply": 2, "maximum": 2, "minimum": 2, "clip": 1, "concatenate": 1, "abs": 1}
X = wildcard()
ENTRIES = [
    Entry("bias", wildcard() + is_constant()),
    Entry("clipped", is_op("clip")(is_elementwise()(wildcard(), wildcard())).optional(lambda x: is_op("abs")(x))),
    Entry("chain", is_op("abs")(is_op("clip")(wildcard()) | is_op("maximum")(wildcard(), wildcard()))),
    Entry("square", (X - wildcard()) * X, lambda match: len(match.inputs) < 3),
    Entry("diamond", is_op("add")(None).dominates(is_op("multiply")(None), is_elementwise()(None))),
]


@dataclass
class Case:
    """A module, the compilers asked, and the module after each step."""

    mod: IRModule
    targets: tuple[str, ...]
    steps: dict[str, IRModule] = field(default_factory=dict[str, IRModule])


def random_module(choose: Choose) -> IRModule:
    """Up to 30 ops on one to three arguments; results are any values, some twice."""
    inputs = [f"x{k}" for k in range(1 + choose(3))]
    values, lines = list(inputs), list[str]()
    for k in range(1 + choose(30)):
        kind = list(KINDS)[choose(len(KINDS))] if choose(8) else "constant"
        near = values[-6:] if choose(2) else values
        operands = [str(choose(9))] if kind == "constant" else [near[choose(len(near))] for _ in range(KINDS[kind])]
        lines.append(f"v{k} = {kind} {' '.join(operands)}")
        values.append(f"v{k}")
    results = [values[-1 - choose(min(9, len(values)))] for _ in range(1 + choose(4))]
    text = str(module("\n".join([*lines, "return " + ", ".join(results)]), " ".join(inputs), INTEGERS))
    return IRModule.parse(text)  # for the places of its ops


def random_compilers(choose: Choose, known: Known) -> tuple[str, ...]:
    """One to three compilers, each with some ops, some entries and some idea of costs."""
    names = tuple(f"c{k}" for k in range(1 + choose(3)))
    for name in names:
        takes = [kind for kind in KINDS if choose(2)]
        entries = [entry for entry in ENTRIES if choose(2)]
        per_op = choose(5)
        known(name, *takes, entries=entries, cost=partial(linear, per_op) if choose(3) else None, compiled=as_text)
    return names


def linear(per_op: int, ops: Sequence[Operation]) -> float:
    """A cost that grows with the number of ops."""
    return 1.0 + per_op * len(ops)


def random_case(choose: Choose, known: Known) -> Case:
    """A module through every step, with random options."""
    case = Case(random_module(choose), random_compilers(choose, known))
    steps = case.steps
    steps["composites"] = MergeComposite(case.targets)(case.mod) if choose(4) else case.mod
    steps["annotated"] = AnnotateTarget(case.targets)(steps["composites"])
    steps["regions"] = MergeCompilerRegions()(steps["annotated"])
    steps["pruned"] = PruneRegions(min_ops=choose(4), compute=False)(steps["regions"])
    steps["functions"] = PartitionGraph(constants=("bind", "hoist")[choose(2)])(steps["pruned"])
    steps["each alone"] = PartitionGraph()(steps["annotated"])
    steps["inlined"] = InlinePartitions()(steps[("regions", "functions", "annotated")[choose(3)]])
    return case


def main(numbers: Sequence[int], known: Known) -> None:
    """Print a hash of the text of every step of these cases."""
    for number in numbers:
        case = random_case(random.Random(number).randrange, known)
        texts = [step.to_text(locations=True) + str(step.partition_report()) for step in case.steps.values()]
        print(number, sha256("".join(texts).encode()).hexdigest())


if __name__ == "__main__":
    main(range(int(sys.argv[1]), int(sys.argv[2])), Known(registry.COMPILERS.registered))
