"""`finished`: a module of one function `@main` from what an importer has built of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from relay import signature
from relay.frontend.importing.builder import free_name
from relay.module import IRModule
from relay.signature import TensorInfo


def finished(
    block: Block,
    results: Sequence[SSAValue],
    inputs: Sequence[TensorInfo],
    states: Sequence[TensorInfo],
    outputs: Sequence[TensorInfo],
) -> IRModule:
    """The module: arguments are the inputs and then the states, results the outputs and then the new states. A name
    that a graph gives out twice, or that is a state's, gets a number."""
    block.add_op(ReturnOp(*results))
    types = FunctionType.from_lists([argument.type for argument in block.args], [value.type for value in results])
    function = FuncOp("main", types, Region(block))
    seen = {info.name for info in states}
    given: list[TensorInfo] = []
    for info in outputs:
        name = free_name(info.name, seen)
        seen.add(name)
        given.append(replace(info, name=name))
    signature.write(function, [*inputs, *states], [*given, *states])
    return IRModule(ModuleOp([function]))
