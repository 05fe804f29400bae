"""Imports If, Loop and Scan, whose subgraphs are inlined or become the blocks of `scf.if` and `scf.while`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, SSAValue

from relay.dialects import relay
from relay.frontend.importing.control import branched, known_truth, truth
from relay.frontend.onnx.builder import Importer
from relay.frontend.onnx.node import Node
from relay.frontend.onnx.table import op

MOST_TURNS = 4096
"""The maximum number of loop iterations that are unrolled."""
_FIX = "if an input decides it, fix its value: frontend={'constants': {'NAME': value}}"


@op("If")
def conditional(importer: Importer, node: Node) -> list[SSAValue]:
    """Import If: the branch that a known condition selects, or both, which must then have the same types."""
    known = known_truth(importer, node.input(0))
    if known is not None:
        graph = node.graph("then_branch" if known else "else_branch")
        return importer.subgraph(node, graph, importer.block, [])
    names = ("then_branch", "else_branch")
    build = importer.subgraph
    return branched(importer, node.input(0), lambda i, block: build(node, node.graph(names[i]), block, []), _FIX)


@op("Loop")
def loop(importer: Importer, node: Node) -> list[SSAValue]:
    """Import Loop: unrolled if the number of iterations is known and nothing else ends the loop; else as
    `scf.while`."""
    count, start = (None if node.optional(n) is None else importer.known(node.input(n)) for n in (0, 1))
    go = True if node.optional(1) is None else None if start is None else bool(start.reshape(-1)[0])
    limited = node.optional(0) is not None
    graph, states = node.graph("body"), node.inputs_from(2)
    if go is not None and (count is not None or not limited):
        most = MOST_TURNS if count is None else int(count.reshape(-1)[0])
        found = _unrolled(importer, node, go, min(most, MOST_TURNS + 1), states)
        if found is not None:
            return found
    if len(graph.output) > 1 + len(states):
        raise node.unsupported("collects a result per turn, of turns that depend on values", _FIX)
    return _while(importer, node, states)


def _unrolled(importer: Importer, node: Node, go: bool, most: int, states: Sequence[SSAValue]) -> list[SSAValue] | None:
    """Unroll a loop of at most `most` iterations (none if the initial condition `go` is false), and return its outputs.
    Returns None if a run-time value decides whether there is a next iteration, or if the loop is better imported as
    `scf.while`: it has more than 16 iterations, keeps the types of its states and collects no results."""
    graph, values = node.graph("body"), list(states)
    rows: list[list[SSAValue]] = [[] for _ in graph.output[1 + len(states) :]]
    turn = 0
    while go and turn < most:
        if turn >= MOST_TURNS:
            raise node.unsupported(f"has more than {MOST_TURNS} turns that collect results")
        given = [importer.unnamed(np.asarray(turn, np.int64)), importer.unnamed(np.asarray(True)), *values]
        condition, *found = importer.subgraph(node, graph, importer.block, given)
        values = found[: len(states)]
        for row, value in zip(rows, found[len(states) :], strict=True):
            row.append(value)
        turn += 1
        known = known_truth(importer, condition)
        same_types = [v.type for v in values] == [v.type for v in states]
        if known is None and turn < most or not rows and turn == 1 and same_types and most > 16:
            return None  # the ops built so far are unused, and removed as dead code
        go = bool(known)
    if not turn and rows:
        raise node.unsupported("takes no turn and collects results, whose sizes are not known")
    return [*values, *(importer.stack(row, 0) for row in rows)]


def _while(importer: Importer, node: Node, states: Sequence[SSAValue]) -> list[SSAValue]:
    """The loop as `scf.while`, which carries the iteration index, the condition and the states."""
    yes = importer.unnamed(np.asarray(True))
    go = yes if node.optional(1) is None else importer.reshape(node.input(1), ())
    carried = [importer.unnamed(np.asarray(0, np.int64)), go, *states]
    types = [value.type for value in carried]
    before, after = Block(arg_types=types), Block(arg_types=types)
    outer, importer.block = importer.block, before
    test = before.args[1]
    if node.optional(0) is not None:
        limit = importer.cast(importer.reshape(node.input(0), ()), i64)
        test = importer.call(relay.LogicalAndOp, importer.call(relay.LessOp, before.args[0], limit), test)
    importer.block = outer
    before.add_op(scf.ConditionOp(truth(importer, test, before), *before.args))
    turn, _, *inner = after.args
    condition, *found = importer.subgraph(node, node.graph("body"), after, [turn, after.args[1], *inner])
    outer, importer.block = importer.block, after
    following = importer.call(relay.AddOp, turn, importer.like(1, turn))
    condition = importer.reshape(condition, ())
    importer.block = outer
    if [value.type for value in found] != types[2:]:
        raise node.unsupported("its states change their types from turn to turn")
    after.add_op(scf.YieldOp(following, condition, *found))
    return list(importer.append(scf.WhileOp(carried, types, [before], [after])))[2:]


@op("Scan", since=9)
def scan(importer: Importer, node: Node) -> list[SSAValue]:
    """Import Scan: the body is unrolled for each position along the scanned axes."""
    graph, count = node.graph("body"), node.integer("num_scan_inputs")
    states, scanned = node.inputs()[:-count], node.inputs()[-count:]
    results = len(graph.output) - len(states)

    def each(name: str, length: int) -> tuple[int, ...]:
        return node.integers(name) or (0,) * length

    axes = [node.axis(a, importer.rank(v)) for a, v in zip(each("scan_input_axes", count), scanned, strict=True)]
    sizes = {importer.shape(value)[axis] for value, axis in zip(scanned, axes, strict=True)}
    turns = sizes.pop() if len(sizes) == 1 else -1
    if not 0 < turns <= MOST_TURNS:
        raise node.unsupported(f"scans {turns} positions", f"1 to {MOST_TURNS} are supported")
    backwards = each("scan_input_directions", count)
    rows: list[list[SSAValue]] = [[] for _ in range(results)]
    for turn in range(turns):
        given = [
            importer.row(value, turns - 1 - turn if back else turn, axis)
            for value, axis, back in zip(scanned, axes, backwards, strict=True)
        ]
        found = importer.subgraph(node, graph, importer.block, [*states, *given])
        states = found[: len(states)]
        for row, value in zip(rows, found[len(states) :], strict=True):
            row.append(value)
    collected: list[SSAValue] = []
    for row, axis, back in zip(
        rows, each("scan_output_axes", results), each("scan_output_directions", results), strict=True
    ):
        at = node.axis(axis, importer.rank(row[0]) + 1)
        collected.append(importer.stack(row[::-1] if back else row, at))
    return [*states, *collected]
