"""Imports IF and WHILE, whose subgraphs become the blocks of `scf.if` and `scf.while`; and variables, which are
states."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, SSAValue

from relay.frontend.importing.control import branched, truth
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import Node
from relay.frontend.tflite.subgraphs import CALLS
from relay.frontend.tflite.table import ANY, operator


def same_types(node: Node, what: str, given: Sequence[SSAValue], wanted: Sequence[SSAValue]) -> None:
    """Raise Malformed unless a subgraph returns values of the types that its caller expects."""
    if [value.type for value in given] != [value.type for value in wanted]:
        raise node.malformed(f"{what} gives other types than it should")


@operator("IF", versions=(1, 1), inputs=(1, ANY), outputs=(1, ANY))
def conditional(importer: Importer, node: Node) -> list[SSAValue]:
    """Import IF: one of two subgraphs, called with the inputs after the condition."""
    condition, *given = [importer.value(each) for each in node.inputs()]
    results: list[list[SSAValue]] = []

    def branch(number: int, block: Block) -> list[SSAValue]:
        results.append(importer.inline(node, node.integer(CALLS["IF"][number]), block, given))
        same_types(node, "its else branch", results[-1], results[0])
        return results[-1]

    return branched(importer, condition, branch)


@operator("WHILE", versions=(1, 1), inputs=(1, ANY), outputs=(1, ANY))
def loop(importer: Importer, node: Node) -> list[SSAValue]:
    """Import WHILE: the body's subgraph while the condition's yields true; loop-carried values have the types of the
    inputs."""
    given = [importer.value(each) for each in node.inputs()]
    types = [value.type for value in given]
    tested, turned = Block(arg_types=types), Block(arg_types=types)
    answer = importer.inline(node, node.integer("cond_subgraph_index"), tested, tested.args)
    if len(answer) != 1:
        raise node.malformed(f"its condition has {len(answer)} outputs")
    tested.add_op(scf.ConditionOp(truth(importer, answer[0], tested), *tested.args))
    results = importer.inline(node, node.integer("body_subgraph_index"), turned, turned.args)
    same_types(node, "its body", results, given)
    turned.add_op(scf.YieldOp(*results))
    return list(importer.append(scf.WhileOp(given, types, [tested], [turned])))


@operator("READ_VARIABLE", versions=(1, 1), inputs=(1, 1))
def read_variable(importer: Importer, node: Node) -> list[SSAValue]:
    """Import READ_VARIABLE: the value that was assigned last."""
    return [importer.value(node.input(0))]


@operator("ASSIGN_VARIABLE", versions=(1, 1), inputs=(2, 2), outputs=(0, 0))
def assign_variable(importer: Importer, node: Node) -> list[SSAValue]:
    """Import ASSIGN_VARIABLE: sets the value for later reads, and for the first read of the next run."""
    state, value = importer.value(node.input(0)), importer.value(node.input(1))
    if value.type != state.type:
        raise node.unsupported(f"assigns {value.type} to a variable of {state.type}")
    importer.define(node.input(0), value)
    return []
