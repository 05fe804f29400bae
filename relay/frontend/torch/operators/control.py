"""Imports cond, while_loop and map: bodies become blocks of `scf.if` and `scf.while`, or are unrolled."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Block, SSAValue

from relay.frontend.importing.control import branched, known_truth, truth
from relay.frontend.torch.builder import Importer
from relay.frontend.torch.node import Node, Subgraph, is_list, is_value
from relay.frontend.torch.table import AUTOCAST, op

MOST_TURNS = 4096
"""The maximum number of iterations of a map that are unrolled."""


def _graph(node: Node, number: int) -> Subgraph:
    found = node.positional[number]
    if not isinstance(found, Subgraph):
        raise node.malformed(f"argument {number} is no graph")
    return found


def _tensors(node: Node, number: int) -> list[SSAValue]:
    found: object = node.positional[number] if number < len(node.positional) else list[object]()
    given = found if is_list(found) else [found]
    if wrong := [each for each in given if not is_value(each)]:
        raise node.unsupported(f"argument {number} has {str(wrong)[:80]}, no tensors", "pass torch.tensor(number)")
    return [each for each in given if is_value(each)]


@op("higher_order.wrap_with_set_grad_enabled", AUTOCAST)
def inlined(importer: Importer, node: Node) -> list[SSAValue]:
    """Import a region such as that of `with torch.no_grad()`: the body is inlined."""
    number = next((i for i, each in enumerate(node.positional) if isinstance(each, Subgraph)), 0)
    given = [each for each in node.positional[number + 1 :] if is_value(each)]
    return importer.subgraph(node, _graph(node, number), importer.block, given)


@op("higher_order.cond")
def conditional(importer: Importer, node: Node) -> list[SSAValue]:
    """Import cond: the branch that a known condition selects, or both, which must then have the same types."""
    given, condition = _tensors(node, 3), node.positional[0]
    known = condition if isinstance(condition, bool) else None
    if is_value(condition):
        known = known_truth(importer, condition)
    if known is not None:
        return importer.subgraph(node, _graph(node, 1 if known else 2), importer.block, given)
    if not is_value(condition):
        raise node.malformed(f"its condition is {condition}, no boolean")
    build = importer.subgraph
    return branched(importer, condition, lambda i, block: build(node, _graph(node, 1 + i), block, given))


@op("higher_order.while_loop")
def while_loop(importer: Importer, node: Node) -> list[SSAValue]:
    carried, others = _tensors(node, 2), _tensors(node, 3)
    types = [value.type for value in carried]
    before, after = Block(arg_types=types), Block(arg_types=types)
    (go,) = importer.subgraph(node, _graph(node, 0), before, [*before.args, *others])
    before.add_op(scf.ConditionOp(truth(importer, go, before), *before.args))
    found = importer.subgraph(node, _graph(node, 1), after, [*after.args, *others])
    if [value.type for value in found] != types:
        before, behind = (", ".join(map(str, each)) for each in (types, [value.type for value in found]))
        raise node.unsupported(f"a turn makes {behind} of {before}", "states must keep their types")
    after.add_op(scf.YieldOp(*found))
    return list(importer.append(scf.WhileOp(carried, types, [before], [after])))


@op("higher_order.map_impl", "higher_order.map")
def map_(importer: Importer, node: Node) -> list[SSAValue]:
    """Import map: the body is unrolled for each index of the first axis."""
    mapped, others = _tensors(node, 1), _tensors(node, 2)
    turns = {importer.static(value, [0])[0] for value in mapped}
    if len(turns) != 1 or not 0 < min(turns) <= MOST_TURNS:
        raise node.unsupported(f"maps {sorted(turns)} rows", f"1 to {MOST_TURNS} are supported")
    rows: list[list[SSAValue]] = []
    for turn in range(*turns):
        given = [importer.row(value, turn, 0) for value in mapped]
        rows.append(importer.subgraph(node, _graph(node, 0), importer.block, [*given, *others]))
    return [importer.stack(column, 0) for column in zip(*rows, strict=True)]
