"""Change the batch size of a module: `with_batch` sets an unknown one, `rebatch` replaces a known one.

The leading axis of every argument is the batch. Values computed from arguments have it as their leading axis, too:
`batch * k` rows, image after image (k is more than 1 behind a reshape that flattens images). Ops whose results along
that axis are independent (`TensorOp.independent_along`) keep the images apart; properties that name the size of the
axis are changed, and types follow (`TensorOp.infer`). Any other op is an error that names its operator, so that each
row of a result equals that of a batch of 1.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import SupportsIndex

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, FileLineColLoc, NameLoc, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from relay import signature
from relay.arguments import positive
from relay.dialects import qnn, relay
from relay.dialects.attributes import Array, int_values, ints, to_numpy
from relay.dialects.op import TensorOp, axis_of, is_tensor, rank, shape
from relay.dialects.relay.matmul import MatmulBase
from relay.dialects.relay.reduce import ReducingOp
from relay.errors import InvalidArgument, Unsupported
from relay.interpreters import evaluate
from relay.module import IRModule
from relay.transforms.dead_ops import erase_dead
from relay.transforms.dynamic_to_static import DynamicToStatic
from relay.transforms.expansion import constant_before
from relay.transforms.location import place
from relay.transforms.shape_arithmetic import measured

MAX_ELEMENTS = 1 << 40
"""The largest number of elements of a tensor."""
MAX_SIZE = (1 << 31) - 1
"""The largest size of an axis that a property may name."""
MOST_PROBLEMS = 100

HINT = "give relay.build the file, or relay.frontend.from_tflite a batch"


def with_batch(mod: IRModule, batch: SupportsIndex) -> IRModule:
    """Copy the module with the unknown batch `?` of all arguments set to `batch`, and all types that follow from it.

    A module that has this batch already is returned unchanged. Raises InvalidArgument unless `batch` is a positive
    number, and if the leading axes are fixed to another number. (`rebatch` changes fixed axes, of a module that was
    imported from a model file.)
    """
    given, batch = batch, positive(batch)
    if not batch:
        raise InvalidArgument("batch", f"is {given!r}", "it must be a number of at least 1")
    dims = [each.get_shape() for each in mod["main"].function_type.inputs if is_tensor(each)]
    open = [shape for shape in dims if DYNAMIC_INDEX in shape]
    if not open and {shape[0] for shape in dims if shape} == {batch}:
        return mod
    if not open or any(shape.index(DYNAMIC_INDEX) or shape.count(DYNAMIC_INDEX) > 1 for shape in open):
        shapes = ", ".join("x".join("?" if d == DYNAMIC_INDEX else str(d) for d in shape) for shape in dims)
        raise InvalidArgument("batch", f"the module's arguments have the shapes {shapes}", HINT)
    copy = mod.clone()
    DynamicToStatic(sizes=batch).apply(Context(), copy.op)
    return copy


def rebatch(mod: IRModule, batch: int, file: str) -> None:
    """Change the fixed leading axes of a module to this batch, in place; `file` is the name used in errors.

    Raises Unsupported with every operator that would mix images, or that has no known rule, and where shapes of the
    model do not fit another batch.
    """
    infos, outputs = signature.read(mod["main"])
    sizes = {next(iter(info.shape), 0) for info in infos if info.kind == "input"}
    if sizes == {batch}:
        return
    if len(sizes) != 1 or 0 in sizes:
        shapes = ", ".join(str(list(info.shape)) for info in infos if info.kind == "input")
        raise Unsupported(file, f"the inputs have shapes {shapes}", "batch needs inputs of one leading axis")
    work = _Batch(mod, sizes.pop(), batch, file)
    states = [work.state(info) for info in infos]
    work.survey()
    work.rewrite()
    signature.write(mod["main"], states, outputs)


class _Batch:
    """A function, and the set of its values that have the batch as their leading axis."""

    def __init__(self, mod: IRModule, stored: int, batch: int, file: str) -> None:
        self.function, self.stored, self.batch, self.file = mod["main"], stored, batch, file
        self.block = self.function.body.block
        self.batched: set[SSAValue] = set(self.block.args)

    def rows(self, size: int) -> int:
        """Convert `size`, the size of a leading axis for the old batch, to the new batch."""
        return size // self.stored * self.batch

    def scaled(self, value: SSAValue) -> TensorType[Attribute]:
        """The type of the value for the new batch."""
        assert is_tensor(value.type)
        dims = value.type.get_shape()
        return TensorType(value.type.element_type, [self.rows(dims[0]), *dims[1:]])

    def state(self, info: signature.TensorInfo) -> signature.TensorInfo:
        """The description of an argument for the new batch; initial values of a state are repeated for each image."""
        where = f"{self.file}: {info.name}"
        if not info.shape or info.shape[0] % self.stored:
            raise Unsupported(where, f"of shape {info.shape} has no leading axis of {self.stored} images")
        dims = (self.rows(info.shape[0]), *info.shape[1:])
        if prod(dims) >= MAX_ELEMENTS:
            raise Unsupported(where, f"of shape {dims} has too many elements", "use a smaller batch")
        if info.initial is None:
            return replace(info, shape=dims)
        if self.stored != 1 and (info.initial != info.initial.flat[0]).any():
            raise Unsupported(where, f"starts with numbers for {self.stored} images", "use the stored batch")
        return replace(info, shape=dims, initial=np.resize(info.initial, dims))

    def survey(self) -> None:
        """Add to `self.batched` all values whose leading axis runs over the images of the batch. Raises Unsupported,
        naming each operator that mixes images, if there are any."""
        problems: dict[str, str] = {}
        for op in self.block.ops:
            if not op.results or all(self.batched.isdisjoint(each.operands) for each in op.walk()):
                continue
            what = self.mixes(op) if isinstance(op, TensorOp) else UNKNOWN
            if not what:
                wrong = [each for each in map(shape, op.results) if not each or each[0] % self.stored]
                what = f"its result {list(wrong[0])} has no leading axis of {self.stored} images" if wrong else ""
            if what:
                meet = "" if what == UNKNOWN else "images of a batch would meet: "
                problems.setdefault(_operator(op), f"{meet}{what}")
            self.batched.update(op.results)
        if problems:
            lines = [f"{where}: {what}" for where, what in problems.items()][:MOST_PROBLEMS]
            count = f"{len(problems)} problem{'s' * (len(problems) > 1)}:"
            raise Unsupported(f"{self.file}: batch {self.batch}", "\n  ".join([count, *lines]))

    def mixes(self, op: TensorOp) -> str:
        """Why the op would mix images; empty if it keeps them independent."""
        data = op.broadcast_operands() if op.ELEMENTWISE else op.data_operands()
        slots = [slot for slot, value in enumerate(op.operands) if value in self.batched]
        wrong = [slot for slot in slots if op.operands[slot] not in data]
        match op:
            case relay.ReshapeOp():
                return ""
            case relay.GatherNdOp() if slots == [0] and shape(op.input)[0] == self.stored and takes_own_rows(op):
                return ""
            case relay.TakeOp() | relay.GatherNdOp() if wrong:
                first = isinstance(op, relay.TakeOp) and op.axis is not None and not op.axis.value.data
                if slots == [1] and (first or isinstance(op, relay.GatherNdOp) and rank(op.indices) > 1):
                    return ""
                return "data and indices depend on the inputs" if len(slots) > 1 else "its indices count images"
            case relay.GatherOp() if slots in ([0], [1]):
                return "its batch dimensions count images"
            case relay.GatherOp() if wrong:
                return "" if op.independent_along(0) else _reason(op)
            case relay.ReverseSequenceOp() if slots == [0, 1] and op.axes()[1] == 0:
                return ""
            case relay.OneHotOp():
                axis = axis_of(op.axis.value.data, rank(op.result), op.name)
                return "the axis is the leading one" if axis == 0 else ""
            case MatmulBase() if slots == [0] and rank(op.tensor_a) == 2 and not op.transpose_a.value.data:
                return ""
            case relay.FullLikeOp() if slots == [0]:
                return ""
            case relay.BroadcastToOp():
                same = rank(op.input) == rank(op.result) and shape(op.input)[0] == shape(op.result)[0]
                return "" if same else "the leading axis is repeated"
            case _ if wrong:
                return f"input {wrong[0]} is computed from the inputs"
            case _ if not op.independent_along(0):
                return _reason(op)
            case _:
                aligned = op.ELEMENTWISE or isinstance(op, MatmulBase)
                same = all(rank(op.operands[slot]) == rank(op.results[0]) for slot in slots)
                return "its operands have different ranks" if aligned and not same else ""

    def rewrite(self) -> None:
        """Change arguments, properties and results to the sizes of the new batch."""
        for argument in tuple(self.block.args):
            Rewriter.replace_value_with_new_type(argument, self.scaled(argument))
        self.batched.update(self.block.args)
        for op in self.block.ops:
            if not isinstance(op, TensorOp) or self.batched.isdisjoint(op.operands):
                continue
            wanted = [self.scaled(value) for value in op.results]
            self.resize(op)
            try:
                found = [*op.infer()]
            except VerifyException as error:
                raise self.does_not_fit(op, str(error)) from None
            if found != wanted:
                raise self.does_not_fit(op, f"{found[0]} follows from its inputs, not {wanted[0]}")
            op.set_result_types(found)
            self.batched.update(op.results)
        self.function.update_function_type()

    def resize(self, op: TensorOp) -> None:
        """Adapt properties that name the size of the leading axis, and indices that number its rows."""
        match op:
            case relay.GatherNdOp() if op.indices not in self.batched:
                assert isinstance(old := op.indices.owner, relay.ConstantOp)
                indices = np.repeat(to_numpy(old.value)[:1], self.batch, axis=0)
                indices[..., 0] = np.arange(self.batch).reshape(-1, *[1] * (indices.ndim - 2))
                op.operands[1] = constant_before(op, indices)
                erase_dead([old])
                return
            case relay.ReshapeOp():
                name, numbers = "newshape", op.newshape
            case relay.BroadcastToOp():
                name, numbers = "shape", op.shape
            case relay.StridedSliceOp():
                name, numbers = "end", op.end
            case _:
                return
        first, *others = int_values(numbers)
        if self.rows(first) > MAX_SIZE:
            dims = list(self.scaled(op.results[0]).get_shape())
            what = f"batch {self.batch} needs {self.rows(first)} in tensor {dims}, whose sizes are int32"
            raise InvalidArgument(f"{self.file}: {_operator(op)}", what, "use a smaller batch")
        op.properties[name] = ints([first if first < 0 else self.rows(first), *others])

    def does_not_fit(self, op: Operation, what: str) -> Unsupported:
        """The error for shapes that agree only for the old batch."""
        where = f"{self.file}: {_operator(op)}"
        return Unsupported(where, f"does not take batch {self.batch}: {what}", "use the stored batch")


def takes_own_rows(op: relay.GatherNdOp) -> bool:
    """Whether row i of the result is gathered only from row i of the data, for every i, and from the same positions in
    each row. This is so if the indices are constants, their first coordinate is i in row i, and their other coordinates
    are equal in all rows."""
    if not isinstance(op.indices.owner, relay.ConstantOp) or rank(op.indices) < 2:
        return False
    first, *_ = indices = to_numpy(op.indices.owner.value)
    own = np.arange(len(indices)).reshape(-1, *[1] * (indices.ndim - 2))
    return bool((indices[..., 0] == own).all() and (indices[..., 1:] == first[..., 1:]).all())


def fold_indices(mod: IRModule) -> None:
    """Replace indices of `relay.gather_nd` that are computed only from constants and shapes by constants."""
    known: dict[SSAValue, Array | None] = {}

    def numbers(value: SSAValue) -> Array | None:
        if value not in known:
            known[value] = None
            owner = value.owner
            if isinstance(owner, relay.ConstantOp):
                known[value] = to_numpy(owner.value)
            elif isinstance(owner, relay.MeasureOp):
                known[value] = measured(owner)
            elif isinstance(owner, TensorOp):
                given = [each for each in map(numbers, owner.operands) if each is not None]
                if len(given) == len(owner.operands):
                    known[value] = evaluate(owner, given)[owner.results.index(value)]
        return known[value]

    found = [op for op in mod["main"].walk() if isinstance(op, relay.GatherNdOp)]
    for op in found:
        if not isinstance(op.indices.owner, relay.ConstantOp) and (indices := numbers(op.indices)) is not None:
            op.operands[1] = constant_before(op, indices)
    if found:
        erase_dead(mod["main"].body.block.ops)


UNKNOWN = "it is not known to keep the images of a batch apart"


def _reason(op: TensorOp) -> str:
    """Why the op mixes indices along its leading axis."""
    match op:
        case relay.TransposeOp():
            return "the leading axis is moved"
        case relay.PadOp() | relay.MirrorPadOp():
            return "the leading axis is padded"
        case relay.StridedSliceOp():
            return "a part of the leading axis is taken"
        case relay.TileOp():
            return "the leading axis is repeated"
        case relay.ReverseOp() | ReducingOp() | qnn.MeanOp() | qnn.SumOp():
            return "the leading axis is one of its axes"
        case qnn.LstmOp():
            return "the leading axis is time"
        case _:
            return "the axis is the leading one" if "axis" in op.properties or rank(op.results[0]) < 2 else UNKNOWN


def _operator(op: Operation) -> str:
    """How errors name an op: by the operator of the model file that it was imported from or, if that is unknown, by its
    location in the module."""
    match op.location:
        case NameLoc(desc=desc, location=FileLineColLoc()):
            return desc.data
        case _:
            return place(op)
