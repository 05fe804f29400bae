"""The class `Emitter`, which appends ops with one source location to a block, and is used by all lowerings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    Signedness,
    TensorType,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.dialects.linalg.ops import FillOp, GenericOp, IndexOp, YieldOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.utils.hints import isa

from relay.dialects.attributes import INLINE_BYTES, Array, dtype_of, elements, scalar_attr
from relay.dialects.element_types import StoredType, converted, is_extended, is_narrow, ranked_type, storage_type
from relay.dialects.op import created
from relay.lowering.shaped import grouped

INDEX = IndexType()
PARALLEL, REDUCTION = IteratorTypeAttr.parallel(), IteratorTypeAttr.reduction()
OGT = IntegerAttr(2, i64)
"""The predicate of `arith.cmpf` for "greater than, and neither operand is NaN"."""

Kind = Literal["float", "signed", "unsigned"]

Operand = tuple[SSAValue, AffineMap]
"""A tensor, and the map by which an iteration reads or writes it."""

Body = Callable[["Emitter", Sequence[SSAValue]], Sequence[SSAValue]]
"""A function that emits the scalar code of a `linalg.generic` for its block arguments, and returns the values to
yield."""


def kind(type: Attribute) -> Kind:
    """Return how elements of a type are computed with: signed, unsigned or float. `i1` is unsigned."""
    if isinstance(type, StoredType):
        return kind(type.storage)
    if isinstance(type, AnyFloat):
        return "float"
    assert isa(type, IntegerType)
    return "unsigned" if type.signedness.data == Signedness.UNSIGNED or type.width.data == 1 else "signed"


@lru_cache(maxsize=4096)
def signless(type: Attribute) -> Attribute:
    """Return the type that replaces a `relay` type in `linalg`: integers without signedness, since there the ops are
    signed or unsigned, and for a type narrower than its storage, such as bf16, the integer type in which it is
    stored."""
    if isinstance(type, StoredType):
        return signless(type.storage)
    if is_narrow(type):
        return storage_type(type)
    if isa(type, IntegerType):
        return IntegerType(type.width.data)
    if isa(type, TensorType):
        return ranked_type(signless(type.element_type), type.get_shape())
    return type


def element(value: SSAValue) -> Attribute:
    """Return the element type of a tensor, or the type of a scalar."""
    return value.type.element_type if isa(value.type, TensorType) else value.type


def dims(value: SSAValue) -> tuple[int, ...]:
    """Return the shape of a tensor value."""
    assert isa(value.type, TensorType)
    return value.type.get_shape()


def lowest(type: Attribute) -> float | int:
    """Return the lowest number of an element type of `relay`; minus infinity for floats."""
    return (
        -np.inf if isinstance(type, AnyFloat) else 0 if kind(type) == "unsigned" else int(np.iinfo(dtype_of(type)).min)
    )


def highest(type: Attribute) -> float | int:
    """Return the highest number of an element type of `relay`; infinity for floats."""
    if isinstance(type, AnyFloat):
        return np.inf
    return 1 if type == IntegerType(1) else int(np.iinfo(dtype_of(type)).max)


def identity(rank: int) -> AffineMap:
    return AffineMap.identity(rank)


def over(rank: int, expressions: Sequence[AffineExpr | int]) -> AffineMap:
    """Return the map from `rank` dimensions to these expressions; integers become constants."""
    return AffineMap(rank, 0, tuple(AffineExpr.constant(x) if isinstance(x, int) else x for x in expressions))


def axes(rank: int, *positions: int) -> AffineMap:
    """Return the map from `rank` dimensions to those at `positions`."""
    return over(rank, [AffineExpr.dimension(p) for p in positions])


def sliding(position: int, stride: int, offset: int, dilation: int) -> AffineExpr:
    """Return `position * stride + offset * dilation`, where `position` and `offset` are the numbers of two dimensions.
    Factors of 1 are omitted."""
    a, b = AffineExpr.dimension(position), AffineExpr.dimension(offset)
    return (a if stride == 1 else a * stride) + (b if dilation == 1 else b * dilation)


def number(value: SSAValue) -> float | int | None:
    """Return the value of a scalar `arith.constant`, else None."""
    match value.owner:
        case arith.ConstantOp(value=IntegerAttr() as attr):
            return attr.value.data
        case arith.ConstantOp(value=FloatAttr() as attr):
            return attr.value.data
        case _:
            return None


@dataclass(frozen=True)
class Clip:
    """`min(max(x, low), high)` of floats. If `raises`, the maximum is written `x > low ? x : low`, which turns NaN into
    `low`."""

    x: SSAValue
    low: float
    high: float
    raises: bool


def clip_of(op: Operation) -> Clip | None:
    """Return the clip of a float that ends with `op`: `op` is the minimum of a constant and of the maximum of the float
    and a constant. None if `op` is no such minimum."""
    if not isinstance(op, arith.MinimumfOp):
        return None
    lower, high = op.lhs.owner, number(op.rhs)
    if not isinstance(lower, Operation) or lower.name not in ("arith.select", "arith.maximumf"):
        return None
    if raises := lower.name == "arith.select":
        compared = lower.operands[0].owner
        if not isinstance(compared, Operation) or compared.name != "arith.cmpf":
            return None
        if compared.properties["predicate"] != OGT or tuple(compared.operands) != tuple(lower.operands[1:]):
            return None
    low = number(lower.operands[-1])
    return None if low is None or high is None else Clip(lower.operands[-2], low, high, raises)


class Emitter:
    """Appends ops with one source location to a block. Constants are added to the function's block, without
    duplicates."""

    def __init__(
        self, block: Block, location: LocationAttr, root: Emitter | None = None, before: Operation | None = None
    ):
        self.block = block
        self.before = before
        self.location = location
        self.root = self if root is None else root
        self._constants: dict[Attribute, SSAValue] = {}

    @classmethod
    def at_start(cls, function: FuncOp) -> Emitter:
        """Return an emitter that inserts ops at the start of a function."""
        entry = function.body.blocks[0]
        return cls(entry, function.location, before=entry.first_op)

    def at(self, location: LocationAttr) -> Emitter:
        """Return an emitter for the same block and another source location."""
        return Emitter(self.block, location, self.root, self.before)

    def in_front_of(self, op: Operation) -> Emitter:
        """Return an emitter that inserts ops before an op, with the op's location."""
        block = op.parent_block()
        assert block is not None
        return Emitter(block, op.location, self.root, op)

    def __call__(self, op: Operation) -> SSAValue:
        """Append an op (or insert it before `before`), and return its first result."""
        op.location = self.location
        if self.before is None:
            self.block.add_op(op)
        else:
            self.block.insert_op_before(op, self.before)
        return op.results[0]

    def constant(self, value: float | int | np.generic, type: Attribute) -> SSAValue:
        """Return a scalar `arith.constant` of a signless type, in the function's block."""
        if is_narrow(type):
            type, dtype = storage_type(type), dtype_of(type)
            value = np.asarray(converted(np.asarray(value), dtype)).view(f"u{dtype.itemsize}").item()
        if isa(type, IntegerType):
            modulus = 1 << type.width.data
            value = int(value) % modulus
            value = value - modulus if value >= modulus >> 1 and type.width.data > 1 else value
        attr = scalar_attr(value, signless(type))
        root = self.root
        if attr not in root._constants:
            op = created(arith.ConstantOp, (), [signless(type)], {"value": attr})
            root._constants[attr] = root.at(self.location)(op)
        return root._constants[attr]

    def tensor_constant(self, array: Array, label: str = "constant") -> SSAValue:
        """Return an `arith.constant` tensor of a signless type: `dense` if small, else `dense_resource`, which shares
        the array's memory."""
        if array.dtype.kind == "u" or is_extended(array.dtype):
            array = array.view(f"i{array.dtype.itemsize}")
        weight = elements(array, label=label)
        attr: DenseIntOrFPElementsAttr | DenseResourceAttr = (
            DenseIntOrFPElementsAttr.new([weight.type, BytesAttr(weight.array.tobytes())])
            if array.nbytes <= INLINE_BYTES
            else weight.resource()
        )
        return self(created(arith.ConstantOp, (), [weight.type], {"value": attr}))

    def empty(self, shape: Sequence[int], element: Attribute) -> SSAValue:
        return self(tensor.EmptyOp([], ranked_type(element, tuple(shape))))

    def filled(self, shape: Sequence[int], element: Attribute, value: float | int) -> SSAValue:
        """Return a tensor with the same value in all elements."""
        scalar, empty = self.constant(value, element), self.empty(shape, element)
        return self(FillOp([scalar], [empty], [empty.type]))

    def generic(
        self, inputs: Sequence[Operand], outputs: Sequence[Operand], reductions: int, body: Body
    ) -> Sequence[SSAValue]:
        """Emit a `linalg.generic` whose last `reductions` dimensions are reduced; return its results."""
        every = [*inputs, *outputs]
        block = Block(arg_types=[element(value) for value, _ in every])
        inner = Emitter(block, self.location, self.root)
        results = body(inner, block.args)
        end = YieldOp.create(operands=results, location=self.location)
        block.add_op(end)
        rank = every[0][1].num_dims
        op = GenericOp(
            [value for value, _ in inputs],
            [value for value, _ in outputs],
            Region(block),
            [AffineMapAttr(map) for _, map in every],
            [PARALLEL] * (rank - reductions) + [REDUCTION] * reductions,
            [value.type for value, _ in outputs],
        )
        self(op)
        return op.results

    def map(
        self, inputs: Sequence[Operand], shape: Sequence[int], elements: Sequence[Attribute], body: Body
    ) -> Sequence[SSAValue]:
        """Emit a parallel `linalg.generic` that computes new tensors of one shape; for empty tensors, no op is emitted.
        Return the tensors."""
        outputs = [(self.empty(shape, element), identity(len(shape))) for element in elements]
        if 0 in shape:
            return [value for value, _ in outputs]
        count = len(inputs)
        return self.generic(inputs, outputs, 0, lambda e, args: body(e, args[:count]))

    def copy(self, value: SSAValue, map: AffineMap, shape: Sequence[int]) -> SSAValue:
        """Return the elements of a tensor, read through a map, as a new tensor."""
        return self.map([(value, map)], shape, [element(value)], lambda _, args: args)[0]

    def pad(self, value: SSAValue, widths: Sequence[tuple[int, int]], fill: float | int) -> SSAValue:
        """Emit `tensor.pad` by (before, after) per axis; return the value itself if all widths are zero."""
        if not any(before or after for before, after in widths):
            return value
        scalar = self.constant(fill, element(value))
        block = Block(arg_types=[INDEX] * len(widths))
        end = tensor.YieldOp(scalar)
        end.location = self.location
        block.add_op(end)
        low, high = [w[0] for w in widths], [w[1] for w in widths]
        shape = [d + b + a for d, (b, a) in zip(dims(value), widths, strict=True)]
        return self(tensor.PadOp(value, [], [], Region(block), low, high, TensorType(element(value), shape)))

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """Emit `tensor.collapse_shape` or `tensor.expand_shape`, or both (through one dimension) if neither suffices.

        From or to rank 0 a copy is emitted: xDSL does not accept a reassociation without groups.
        """
        given, wanted = dims(value), tuple(shape)
        if given == wanted:
            return value
        if 0 in given:
            return self.empty(wanted, element(value))
        if not given or not wanted:
            return self.copy(value, over(len(wanted), [0] * len(given)), wanted)
        if len(wanted) < len(given) and (groups := reassociation(wanted, given)) is not None:
            return self.collapse(value, groups, wanted)
        if len(wanted) > len(given) and (groups := reassociation(given, wanted)) is not None:
            return self.expand(value, groups, wanted)
        flat = (int(np.prod(given)),)
        return self.reshape(self.reshape(value, flat), wanted)

    def collapse(self, value: SSAValue, groups: Sequence[Sequence[int]], shape: Sequence[int]) -> SSAValue:
        type = TensorType(element(value), shape)
        return self(created(tensor.CollapseShapeOp, [value], [type], {"reassociation": grouped(groups)}))

    def expand(self, value: SSAValue, groups: Sequence[Sequence[int]], shape: Sequence[int]) -> SSAValue:
        return self(tensor.ExpandShapeOp(value, [], grouped(groups), shape, TensorType(element(value), shape)))

    # Scalars

    def widen(self, value: SSAValue, of: Attribute, to: Attribute) -> SSAValue:
        """Extend an integer of `relay` element type `of` to a type that is at least as wide; return a float
        unchanged."""
        if value.type == to or not isa(to, IntegerType):
            return value
        return self(arith.ExtUIOp(value, to) if kind(of) == "unsigned" else arith.ExtSIOp(value, to))

    def index(self, dimension: int) -> SSAValue:
        """Return the index of the current iteration along a dimension."""
        return self(IndexOp(dimension))

    def to_index(self, value: SSAValue) -> SSAValue:
        return self(arith.IndexCastOp(value, INDEX))

    def extract(self, source: SSAValue, indices: Sequence[SSAValue]) -> SSAValue:
        return self(tensor.ExtractOp(source, indices, element(source)))


def reassociation(low: Sequence[int], high: Sequence[int]) -> list[list[int]] | None:
    """Return, for each dimension of `low`, the neighbouring dimensions of `high` whose product it is; None if there is
    no grouping."""
    groups: list[list[int]] = []
    position = 0
    for size in low:
        group: list[int] = []
        product = 1
        while position < len(high) and (not group or product < size):
            group.append(position)
            product *= high[position]
            position += 1
        if product != size or not group:
            return None
        groups.append(group)
    rest = list(range(position, len(high)))
    if any(high[p] != 1 for p in rest):
        return None
    if groups:
        groups[-1] += rest
    return groups
