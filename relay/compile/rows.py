"""Whether a model treats the rows of its inputs each on its own: then builds for few rows serve any number of them."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Operation

from relay import signature
from relay.compile.request import Recipe
from relay.dialects import qnn, relay
from relay.dialects.op import TensorOp, tensor
from relay.errors import RelayError
from relay.module import REQUESTS, IRModule
from relay.passes import registry
from relay.runtime.dynamic import Interface
from relay.runtime.specification import Size
from relay.target import CpuTarget
from relay.transforms.batch import rebatch
from relay.transforms.location import place

BLOCKS = (8, 1)
"""Rows of a block. Products whose weights do not stay in a cache gain by reading them once for several rows: 18 % of
the MobileNet v2 of 4 MB, two thirds of dense layers only, nothing of ultraface, with 8."""
STORED, OTHER = 2, 3
"""Numbers of rows that are imported beside those of blocks, to compare."""
TO_INTEGER = "qdq-to-integer"
"""The pass that importers request for files with codes in QDQ form."""
EXTERNAL = "external compilers build for fixed sizes"
ONE_BY_ONE = (
    *(relay.ConstantOp, relay.ReshapeOp, relay.TransposeOp, relay.BroadcastToOp, relay.ConcatenateOp, relay.PadOp),
    *(relay.StridedSliceOp, relay.TakeOp, relay.GatherNdOp, relay.GatherOp, relay.ExpandDimsOp, relay.SqueezeOp),
    *(relay.SplitOp, relay.StackOp, relay.MaxPool2dOp, relay.SoftmaxOp, relay.BatchFlattenOp, qnn.DequantizeOp),
)
"""Ops whose floats are the same however many rows there are, beside elementwise ones. Others add floats in an order
that depends on the schedule, and that on the number of rows."""


def blocks_of(interface: Interface, at: Callable[[int], IRModule], recipe: Recipe) -> Interface:
    """The interface with the blocks that any number of rows runs in, or why there are none. `at` gives the module for a
    number of rows."""
    blocks, why = (), refusal(interface, recipe)
    if not why:
        most = interface.symbols[0].maximum
        blocks = tuple(size for size in BLOCKS if most is None or size <= most)
        why = meeting(at, blocks)
    if why:
        return interface._replace(why=why)
    ones = signature.read(at(1)["main"])[1]
    name = interface.symbols[0].name
    outputs = [
        spec._replace(shape=(Size(name if (each := info.shape[0]) == 1 else f"{each} {name}"), *info.shape[1:]))
        for spec, info in zip(interface.outputs, ones, strict=True)
    ]
    return interface._replace(blocks=blocks, outputs=outputs)


def refusal(interface: Interface, recipe: Recipe) -> str:
    """Why the symbols are not the number of rows of all inputs, or the target has no code for such; else empty."""
    if not isinstance(recipe.target, CpuTarget) or not recipe.target.has_threads:
        return "the target is not a CPU with an operating system"
    if recipe.external is not None:
        return EXTERNAL
    if interface.deciding:
        return f"the numbers of '{interface.inputs[interface.deciding[0]].name}' decide shapes"
    if len(interface.symbols) != 1:
        return f"{len(interface.symbols)} sizes are open"
    [symbol] = interface.symbols
    if any(spec.kind != "input" for spec in interface.inputs):
        return "the model has states"
    if sorted(symbol.places) != [(index, 0) for index in range(len(interface.inputs))]:
        return f"{symbol.name} is not the leading size of every input"
    if symbol.minimum > 1 or symbol.multiple > 1:
        return f"{symbol.name} may not be 1"
    return ""


def meeting(at: Callable[[int], IRModule], blocks: tuple[int, ...]) -> str:
    """Why the rows of a model do not keep apart, or its floats depend on how many there are; empty where they do.

    The module for two rows is made one for other numbers by a pass that refuses ops under which rows would meet; what
    comes out must be the module for that number, so that nothing is computed with the number itself.
    """
    try:
        stored = at(STORED)
        for rows in {*blocks, OTHER}:
            made, wanted = stored.clone(), at(rows)
            rebatch(made, rows, "rows")
            signature.write(wanted["main"], *signature.read(wanted["main"]))
            if not made.op.is_structurally_equivalent(wanted.op):
                return f"the model for {rows} rows is not that of {STORED} with other sizes"
        if TO_INTEGER in str(stored.op.attributes.get(REQUESTS, "")):
            registry.find(TO_INTEGER)().apply(Context(), stored.op)
    except RelayError as error:
        return str(error).replace("\n", " ")
    summing = [op for op in stored.op.walk() if adds_floats(op)]
    return f"{place(summing[0])} adds floats in an order that depends on how many there are" if summing else ""


def adds_floats(op: Operation) -> bool:
    """Whether results may depend in their last bits on the schedule."""
    if not isinstance(op, TensorOp) or op.ELEMENTWISE or isinstance(op, ONE_BY_ONE):
        return False
    return any(isinstance(tensor(result).element_type, AnyFloat) for result in op.results)
