"""Decides whether a model treats the rows of its inputs independently, so that a build for a few rows serves any number
of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf, prod
from typing import NamedTuple, Protocol

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Operation

from relay import signature
from relay.byoc.partitioning.work import multiplications
from relay.compile.request import Recipe
from relay.dialects import qnn, relay
from relay.dialects.op import TensorOp, shape, tensor
from relay.errors import RelayError
from relay.module import REQUESTS, IRModule
from relay.passes import registry
from relay.runtime.dynamic import Interface
from relay.runtime.specification import Size
from relay.signature import TensorInfo
from relay.sizes import Symbol
from relay.target import CpuTarget
from relay.transforms.batch import fold_indices, rebatch
from relay.transforms.linear import WHY, is_linear
from relay.transforms.location import place
from relay.transforms.shape_arithmetic import Fold


class At(Protocol):
    """The type of functions that return a model's module for given values of its named sizes. The function appends the
    ops that it folded to constants to the list `folds`, if one is given."""

    def __call__(self, sizes: Mapping[str, int], folds: list[Fold] | None = None, /) -> IRModule: ...


BLOCKS, SINGLE = (8, 1), (1,)
"""The numbers of input rows for which a model with independent rows is compiled: `BLOCKS` if its products use each
weight fewer than `FEW` times per row, `SINGLE` otherwise."""
FEW = 8
"""The number of multiplications per weight and row below which a model runs in blocks of rows. A block of 8 rows reads
each weight once, 8 runs of one row read it 8 times: for a model of dense layers only (1 multiplication), a block takes
half the time of 8 runs. With 19 multiplications or more, it takes about as long or longer (digits: 5 % less; MobileNet,
ultraface: 0 to 10 % more), since the smaller arena of a single row stays in a cache."""
STORED, OTHER = 2, 3
"""Two more numbers of rows for which the model is imported. Its rows are independent only if the module for `STORED`
rows, converted to `OTHER` rows and to those of each build, equals the module imported for that number."""
TO_INTEGER = "qdq-to-integer"
"""The pass that importers request for files with quantized values in QDQ form."""
EXTERNAL = "external compilers build for fixed sizes"
ONE_BY_ONE = (
    *(relay.ConstantOp, relay.ReshapeOp, relay.TransposeOp, relay.BroadcastToOp, relay.ConcatenateOp, relay.PadOp),
    *(relay.StridedSliceOp, relay.TakeOp, relay.GatherNdOp, relay.GatherOp, relay.ExpandDimsOp, relay.SqueezeOp),
    *(relay.SplitOp, relay.StackOp, relay.MaxPool2dOp, relay.SoftmaxOp, relay.BatchFlattenOp, qnn.DequantizeOp),
)
"""Ops besides elementwise ones whose float results for a row of the inputs do not depend on the number of rows, the
leading size. Other ops add floats in an order that depends on the schedule, and so on the number of rows."""


def blocks_of(interface: Interface, at: At, recipe: Recipe) -> Interface:
    """The interface of a model with a variable number of rows (the leading size of every input), extended by the
    numbers of rows, `blocks`, for which it is built: any number of rows is run in blocks of these sizes. If that is
    impossible, the interface has the reason `why`. `at` returns the model's module for given sizes."""
    if why := refusal(interface, recipe):
        return interface._replace(why=why)
    [symbol] = interface.symbols
    most, name = symbol.maximum, symbol.name

    def blocks(one: IRModule) -> tuple[int, ...]:
        return tuple(size for size in (BLOCKS if reuse(one) < FEW else SINGLE) if most is None or size <= most)

    try:
        found = kept_apart(symbol, lambda rows, folds: at({name: rows}, folds), blocks)
        if why := found.why or order_of_floats(found.stored):
            return interface._replace(why=why)
    except RelayError as error:
        return interface._replace(why=str(error).replace("\n", " "))
    outputs = [
        spec._replace(shape=(size, *info.shape[1:]))
        for spec, size, info in zip(interface.outputs, found.leading(name), found.outputs, strict=True)
    ]
    return interface._replace(blocks=found.blocks, outputs=outputs)


class Apart(NamedTuple):
    """The finding whether the rows of a model's inputs are independent. `why`: the reason why they are not, empty if
    they are; `blocks`: the numbers of rows for which an executable is built; `outputs`: the model's outputs for one
    input row; `stored`: the model's module for two input rows."""

    why: str
    blocks: tuple[int, ...]
    outputs: list[TensorInfo]
    stored: IRModule

    def leading(self, name: str) -> list[Size]:
        """The size of each output's first axis, as a multiple of the unknown number of rows with this name: `name` for
        an output with one row per input row, `2 name` for one with two."""
        return [Size(name if info.shape[0] == 1 else f"{info.shape[0]} {name}") for info in self.outputs]


def kept_apart(
    symbol: Symbol, at: Callable[[int, list[Fold]], IRModule], blocks: Callable[[IRModule], tuple[int, ...]]
) -> Apart:
    """Analyse whether the rows of a model's inputs, whose number is the open size `symbol`, are independent, and return
    the finding. `at` returns the module for a number of rows, and appends to a list the ops that it replaced because
    all sizes are known; `blocks` returns the numbers of rows to build for, given the module for one row. Raises
    RelayError for ops that mix rows."""
    folds: dict[int, list[Fold]] = {}

    def made(rows: int) -> IRModule:
        folds[rows] = []
        module = at(rows, folds[rows])
        fold_indices(module)
        return module

    one, stored = made(1), made(STORED)
    sizes = blocks(one)
    why = meeting(made, sizes, stored)
    if not why and not is_linear({size: folds[size] for size in (1, OTHER, STORED)}, symbol):
        why = WHY
    outputs, twice = (signature.read(each["main"])[1] for each in (one, stored))
    for info, two in zip(outputs, twice, strict=True):
        if not info.shape or two.shape[0] != STORED * info.shape[0]:
            why = why or f"output '{info.name}' is the same for any {symbol.name}"
    return Apart(why, sizes, outputs, stored)


def reuse(module: IRModule) -> float:
    """The average number of multiplications per weight; infinite if there are no weights."""
    found = [op for op in module.op.walk() if multiplications(op)]
    weights = sum(prod(shape(op.operands[1])) for op in found)
    return sum(map(multiplications, found)) / weights if weights else inf


def refusal(interface: Interface, recipe: Recipe) -> str:
    """The reason why the model cannot be built for fixed numbers of rows and run block by block; "" if it can. The only
    size that is unknown until run time must be the leading one of every input, and may have any value from 1 on;
    states, inputs that decide shapes, external compilers, and targets without threads are refused."""
    if why := fixed(interface, recipe):
        return why
    if len(interface.symbols) != 1:
        return f"{len(interface.symbols)} sizes are open"
    [symbol] = interface.symbols
    if not leads(symbol, interface):
        return f"{symbol.name} is not the leading size of every input"
    if symbol.minimum > 1 or symbol.multiple > 1:
        return f"{symbol.name} may not be 1"
    return ""


def fixed(interface: Interface, recipe: Recipe) -> str:
    """Return the reason why an executable must be built anew for each value of an open size. Return "" if there is no
    such reason: one executable may serve several values."""
    if not isinstance(recipe.target, CpuTarget) or not recipe.target.has_threads:
        return "the target is not a CPU with an operating system"
    if recipe.external is not None:
        return EXTERNAL
    if interface.deciding:
        return f"the numbers of '{interface.inputs[interface.deciding[0]].name}' decide shapes"
    return "the model has states" if any(spec.kind != "input" for spec in interface.inputs) else ""


def leads(symbol: Symbol, interface: Interface) -> bool:
    """Whether the size is the leading size of every input, and occurs nowhere else."""
    return sorted(symbol.places) == [(index, 0) for index in range(len(interface.inputs))]


def meeting(at: Callable[[int], IRModule], blocks: tuple[int, ...], stored: IRModule) -> str:
    """Why the rows of a model are not independent; empty if they are.

    The module for two rows (`stored`) is converted to other numbers of rows by a pass that rejects ops that mix rows;
    the result must equal the module imported for that number, so that no value depends on the number itself. Raises
    RelayError for ops that mix rows.
    """
    for rows in {*blocks, OTHER}:
        made, wanted = stored.clone(), at(rows)
        rebatch(made, rows, "rows")
        signature.write(wanted["main"], *signature.read(wanted["main"]))
        if not made.op.is_structurally_equivalent(wanted.op):
            return f"the model for {rows} rows is not that of {STORED} with other sizes"
    return ""


def order_of_floats(module: IRModule) -> str:
    """Why the last bits of floats depend on the number of rows; empty if they do not."""
    integers = module.clone()
    if TO_INTEGER in str(integers.op.attributes.get(REQUESTS, "")):
        registry.find(TO_INTEGER)().apply(Context(), integers.op)
    summing = [op for op in integers.op.walk() if adds_floats(op)]
    return f"{place(summing[0])} adds floats in an order that depends on how many there are" if summing else ""


def adds_floats(op: Operation) -> bool:
    """Whether the op adds floats in an order that depends on the schedule."""
    if not isinstance(op, TensorOp) or op.ELEMENTWISE or isinstance(op, ONE_BY_ONE):
        return False
    return any(isinstance(tensor(result).element_type, AnyFloat) for result in op.results)
