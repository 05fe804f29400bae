"""`finished` and `completed`: make the module with a single function `@main` from an importer's ops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from relay import signature, symbols
from relay.dialects import qnn, relay
from relay.dialects.attributes import dtype_of
from relay.dialects.op import tensor as type_of
from relay.frontend.importing.builder import free_name
from relay.module import IRModule
from relay.signature import TensorInfo
from relay.transforms.batch import rebatch
from relay.transforms.raise_ops import RaiseOps


def finished(
    block: Block,
    results: Sequence[SSAValue],
    inputs: Sequence[TensorInfo],
    states: Sequence[TensorInfo],
    outputs: Sequence[TensorInfo],
) -> IRModule:
    """The module: its function's arguments are the inputs and then the states, its results the outputs and then the new
    states. An output name that is not unique, or is a state's, gets a number appended."""
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


def output_infos(names: Sequence[str], values: Sequence[SSAValue]) -> list[TensorInfo]:
    """The signature's descriptions of results."""
    types = [type_of(value) for value in values]
    pairs = zip(names, types, strict=True)
    return [TensorInfo(name, type.get_shape(), dtype_of(type.element_type), "output") for name, type in pairs]


def completed(
    module: IRModule, named: Sequence[symbols.Symbol], images: int | None, file: str, quantized: bool
) -> IRModule:
    """The module as an importer returns it: `raise-ops` has run, `@main` has the named sizes `named`, and the batch
    size is `images` if that is given. The module requests that a build run `qdq-to-integer` if `quantized` is set and
    the module has a `qnn.quantize`; else `fold-scale-axis` if it has batch normalizations and no `qnn.dequantize`."""
    RaiseOps().apply(Context(), module.op)
    if named:
        symbols.write(module["main"], named)
    if images is not None:
        rebatch(module, images, file)
    kinds = {type(op) for op in module.op.walk()}
    if quantized and qnn.QuantizeOp in kinds:
        module.request_pass("qdq-to-integer")
    elif relay.BatchNormOp in kinds and qnn.DequantizeOp not in kinds:
        module.request_pass("fold-scale-axis")
    return module
