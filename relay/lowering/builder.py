"""A builder for loop nests: constant indices are folded, and loops nest as `with` blocks."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import overload

from xdsl.dialects import arith, func, llvm, memref, scf, vector
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    BoolAttr,
    DenseArrayBase,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    ModuleOp,
    NoneAttr,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    VectorType,
    f32,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, OperationInvT, Region, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr
from xdsl.rewriter import InsertPoint, Rewriter

from relay.dialects.arith import CmpfOp, CmpiOp, SelectOp, truth_of
from relay.dialects.attributes import dtype_of, ints, scalar_attr
from relay.dialects.op import created
from relay.lowering.dot_products import DotProduct, HalfProduct, MatrixProduct, NibbleProduct, declared
from relay.lowering.shaped import (
    Extent,
    buffer_of,
    elements,
    grouped,
    is_buffer,
    is_vector,
    memref_type,
    scalar_of,
    vector_of,
)

INDEX = IndexType()

# Properties that xDSL's constructors would set, at five times the cost of `create`.
NO_OVERFLOW: Mapping[str, Attribute] = {"overflowFlags": arith.IntegerOverflowAttr("none")}
TEMPORAL: Mapping[str, Attribute] = {"nontemporal": BoolAttr.from_bool(False)}
NO_FAST_MATH = llvm.FastMathAttr(None)
NO_BUNDLES = DenseArrayBase.from_list(i32, ())

INDEPENDENT = "relay.independent"
"""The attribute of a loop whose iterations can be executed in any order, or concurrently: none accesses memory that
another one writes. Its value is a unit attribute, or a dictionary with the data that cores transfer if they share the
iterations, from which the cost of threads is estimated (`lowering/scheduling/sharing.py`)."""

SHARED = "relay.shared"
"""The attribute of a loop that contains one `scf.parallel`. The threads of the `scf.parallel` start once for all
iterations of the loop around it, and in every iteration each executes the same part of the parallel range. Other ops
inside the loop have no side effects."""

ROLLED = "relay.rolled"
"""The attribute of a loop in a GPU kernel, or of a divided loop, that is not to be unrolled."""
TURNS = "relay.turns"
"""The attribute of a loop whose end is known only at run time: the most iterations that it can have."""

Index = SSAValue | int
"""A loop index or an offset: a Python int unless it depends on a loop."""


@lru_cache(maxsize=4096)
def numbers(type: IntegerType, values: tuple[int, ...]) -> Attribute:
    """Return a dense array attribute; cached, because creating one checks each number in it."""
    return DenseArrayBase.from_list(type, values)


@lru_cache(maxsize=1024)
def text(value: str) -> StringAttr:
    """Return a cached string attribute."""
    return StringAttr(value)


class LoopBuilder:
    """Appends ops to a block; `loop` opens a nested block. Constants are at the start of the function."""

    def __init__(self, entry: Block):
        self.entry = self.block = entry
        self.location: LocationAttr | None = None
        self._constants: dict[tuple[Attribute, Attribute], SSAValue] = {}
        self._indices: dict[int, SSAValue] = {}
        self._dots: dict[tuple[type[DotProduct], int, int, bool], tuple[SymbolRefAttr, Attribute, Attribute]] = {}
        self._anchor: Operation | None = None
        self.counted: SSAValue | None = None
        """The length, if the function computes it instead of taking it as an argument; else None."""

    def add(self, op: OperationInvT) -> OperationInvT:
        """Append an op."""
        if self.location is not None:
            op.location = self.location
        self.block.add_op(op)
        return op

    def constant(self, value: float | int, type: Attribute) -> SSAValue:
        """Return an `arith.constant` at the start of the function, without duplicates."""
        return self.constant_attr(scalar_attr(value, type), type)

    def constant_attr(self, attr: Attribute, type: Attribute) -> SSAValue:
        """Return an `arith.constant` of any attribute at the start of the function, without duplicates."""
        if (known := self._constants.get((attr, type))) is not None:
            return known
        op = created(arith.ConstantOp, (), [type], {"value": attr})
        anchor = self._anchor
        Rewriter.insert_op(op, InsertPoint.at_start(self.entry) if anchor is None else InsertPoint.after(anchor))
        self._anchor = op
        self._constants[(attr, type)] = op.result
        return op.result

    # Index arithmetic

    def index(self, value: Index) -> SSAValue:
        """Return the index as an SSA value. For a size that is known only at run time (`Extent`), this is a constant,
        its maximum."""
        if not isinstance(value, int):
            return value
        value = int(value)
        if value not in self._indices:
            self._indices[value] = self.constant(value, INDEX)
        return self._indices[value]

    @overload
    def length(self, extent: Extent) -> SSAValue: ...
    @overload
    def length(self, extent: int) -> Index: ...
    def length(self, extent: int) -> Index:
        """Return the run-time value of an extent: its factor times the length of the sequence. The length is
        `self.counted` if that is set, else the function's argument of type index. A size that is known at compile time
        is returned unchanged."""
        if not isinstance(extent, Extent):
            return extent
        found = self.counted
        if found is None:
            found = next(argument for argument in self.entry.args if argument.type == INDEX)
        return found if extent.factor == 1 else self._integers(arith.MuliOp, found, extent.factor)

    def plus(self, a: Index, b: Index) -> Index:
        """Return `a + b`, as an int if both are ints."""
        if isinstance(a, int) and isinstance(b, int):
            return int(a) + int(b)
        if a == 0:
            return b
        if b == 0:
            return a
        return self._integers(arith.AddiOp, a, b)

    def times(self, a: Index, b: Index) -> Index:
        """Return `a * b`, as an int if both are ints."""
        if isinstance(a, int) and isinstance(b, int):
            return int(a) * int(b)
        for x, y in ((a, b), (b, a)):
            if x == 0:
                return 0
            if x == 1:
                return y
        return self._integers(arith.MuliOp, a, b)

    def _integers(self, op: type[arith.AddiOp | arith.MuliOp], a: Index, b: Index) -> SSAValue:
        operands = [self.index(a), self.index(b)]
        return self.add(created(op, operands, [INDEX], NO_OVERFLOW)).results[0]

    def apply(self, expression: AffineExpr, dims: Sequence[Index]) -> Index:
        """Return the value of an affine expression, whose dimensions have the values `dims`. Raises ValueError for
        expressions that are not sums of products."""
        match expression:
            case AffineConstantExpr():
                return expression.value
            case AffineDimExpr():
                return dims[expression.position]
            case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add):
                return self.plus(self.apply(expression.lhs, dims), self.apply(expression.rhs, dims))
            case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mul):
                return self.times(self.apply(expression.lhs, dims), self.apply(expression.rhs, dims))
            case _:
                raise ValueError(f"affine expression {expression} is no sum of products")

    # Loops

    @contextmanager
    def loop(
        self,
        start: Index,
        stop: Index,
        step: int = 1,
        carried: Sequence[SSAValue] = (),
        independent: bool = False,
        apart: DictionaryAttr | None = None,
        turns: int | None = None,
    ) -> Generator[tuple[Index, Loop]]:
        """Emit a loop, whose body is the `with` block. If there is a single iteration, only its body is emitted; if
        there is none, nothing is emitted. See `Loop` for carried values. `independent`: its iterations can be executed
        in any order, or concurrently; they may write to the same addresses if they write the same values. `apart`: the
        bytes and pixels that cores transfer if they share the iterations; the cost of threads is estimated from them
        (see `lowering/scheduling/sharing.py`). `turns`: the most iterations, if the end is known only at run time."""
        if isinstance(stop, Extent):
            turns, stop = -(-int(stop) // step), self.length(stop)
        count = stop - start if isinstance(start, int) and isinstance(stop, int) else None
        if count is not None and 0 < count <= step:
            state = Loop(list(carried))
            yield start, state
            state.results = state.next
            return
        body = Block(arg_types=[INDEX, *(value.type for value in carried)])
        first, end, stride = (self.index(n) for n in (start, stop, step))
        outer, self.block = self.block, body
        state = Loop(list(body.args[1:]))
        yield body.args[0], state
        self.add(created(scf.YieldOp, state.next))
        self.block = outer
        if count is not None and count <= 0:
            body.erase()
            state.results = list(carried)
            return
        types = [value.type for value in carried]
        loop = self.add(created(scf.ForOp, [first, end, stride, *carried], types, regions=[Region(body)]))
        if independent:
            loop.attributes[INDEPENDENT] = UnitAttr() if apart is None else apart
        if turns is not None:
            loop.attributes[TURNS] = IntegerAttr(turns, i64)
        state.results = list(loop.results)

    @contextmanager
    def loops(self, sizes: Sequence[int]) -> Generator[list[Index]]:
        """Emit loops over the elements of a shape, the first outermost, whose iterations can be executed in any
        order."""
        with ExitStack() as stack:
            yield [stack.enter_context(self.loop(0, size, independent=True))[0] for size in sizes]

    # Memory

    def flatten(self, buffer: SSAValue) -> SSAValue:
        """Return the buffer as one dimension."""
        type = buffer_of(buffer)
        dims = type.get_shape()
        if len(dims) == 1:
            return buffer
        result = memref_type(type.element_type, elements(dims))
        if not dims:
            properties = {"reassociation": grouped([]), "static_output_shape": ints([1])}
            return self.add(created(memref.ExpandShapeOp, [buffer], [result], properties)).results[0]
        return self._collapse(buffer, result, [range(len(dims))])

    def matrix(self, buffer: SSAValue) -> SSAValue:
        """Return a two-dimensional view of the buffer: all dimensions but the last are merged."""
        type = buffer_of(buffer)
        dims, outer = type.get_shape(), len(type.get_shape()) - 1
        result = memref_type(type.element_type, elements(dims[:-1]), dims[-1])
        return self._collapse(buffer, result, [range(outer), [outer]])

    def _collapse(self, buffer: SSAValue, result: Attribute, groups: Sequence[Sequence[int]]) -> SSAValue:
        """Return a view in which groups of dimensions are merged."""
        properties = {"reassociation": grouped(groups)}
        return self.add(created(memref.CollapseShapeOp, [buffer], [result], properties)).results[0]

    def view(self, buffer: SSAValue, shape: Sequence[int]) -> SSAValue:
        """Return a view of the elements, in order, in another shape."""
        flat = self.flatten(buffer)
        type = memref_type(buffer_of(buffer).element_type, *shape)
        properties = {"reassociation": grouped([range(len(shape))]), "static_output_shape": ints(shape)}
        return self.add(created(memref.ExpandShapeOp, [flat], [type], properties)).results[0]

    def load(self, buffer: SSAValue, indices: Sequence[Index]) -> SSAValue:
        """Load one element."""
        return self.add(memref.LoadOp.get(buffer, [self.index(i) for i in indices])).res

    def load_index(self, table: SSAValue, at: Index) -> SSAValue:
        """Load an element of a table of integers as an index."""
        return self.add(arith.IndexCastOp(self.load(table, [at]), INDEX)).result

    def store(self, value: SSAValue, buffer: SSAValue, indices: Sequence[Index]) -> None:
        """Store one element."""
        self.add(memref.StoreOp.get(value, buffer, [self.index(i) for i in indices]))

    def vector_load(self, buffer: SSAValue, indices: Sequence[Index], lanes: int) -> SSAValue:
        """Load consecutive elements, starting at these indices."""
        type = vector_of(buffer_of(buffer).element_type, lanes)
        operands = [buffer, *map(self.index, indices)]
        return self.add(created(vector.LoadOp, operands, [type], TEMPORAL)).results[0]

    def vector_store(self, value: SSAValue, buffer: SSAValue, indices: Sequence[Index]) -> None:
        """Store the lanes to consecutive elements."""
        operands = [value, buffer, *map(self.index, indices)]
        self.add(created(vector.StoreOp, operands, (), TEMPORAL))

    def store_parts(self, value: SSAValue, buffer: SSAValue, indices: Sequence[Index]) -> None:
        """Store a vector in pieces of 64 bytes. If one store wrote it all, and a later load read only a part, LLVM
        would replace the load by code that takes single elements from the stored vector."""
        assert is_vector(value.type)
        (lanes,) = value.type.get_shape()
        size = min(lanes, 64 // dtype_of(value.type.element_type).itemsize)
        for first in range(0, lanes, size):
            part = value if size == lanes else self.shuffle(value, value, range(first, first + size))
            self.vector_store(part, buffer, [*indices[:-1], self.plus(indices[-1], first)])

    def broadcast(self, value: SSAValue, lanes: int) -> SSAValue:
        """Return a vector of `lanes` copies of a scalar, or of the element of a one-element vector."""
        type = vector_of(scalar_of(value.type), lanes)
        return self.add(created(vector.BroadcastOp, [value], [type])).results[0]

    def bitcast(self, value: SSAValue, element: Attribute, lanes: int) -> SSAValue:
        """Return the vector's bits as lanes of another type."""
        type = vector_of(element, lanes)
        return self.add(created(vector.BitcastOp, [value], [type])).results[0]

    def lane(self, value: SSAValue, number: int) -> SSAValue:
        """Return an element of a vector, or a row of a two-dimensional one."""
        assert is_vector(value.type)
        rest = value.type.get_shape()[1:]
        type = VectorType(value.type.element_type, rest) if rest else value.type.element_type
        place = {"static_position": numbers(i64, (number,))}
        return self.add(created(vector.ExtractOp, [value], [type], place)).results[0]

    def with_lane(self, value: SSAValue, number: int, lane: SSAValue) -> SSAValue:
        """Return the vector `value` with its lane of index `number` replaced by the scalar `lane`."""
        place = {"static_position": numbers(i64, (number,))}
        return self.add(created(vector.InsertOp, [lane, value], [value.type], place)).results[0]

    def packed(self, lanes: Sequence[SSAValue]) -> SSAValue:
        """Return a vector of these scalars."""
        value = self.broadcast(lanes[0], len(lanes))
        for number, lane in enumerate(lanes[1:], 1):
            value = self.with_lane(value, number, lane)
        return value

    def fields(self, struct: SSAValue) -> list[SSAValue]:
        """Return the members of a struct."""
        assert isinstance(struct.type, llvm.LLVMStructType)
        places = [(DenseArrayBase.from_list(i64, [n]), type) for n, type in enumerate(struct.type.types)]
        return [self.add(llvm.ExtractValueOp(place, struct, type)).res for place, type in places]

    def compare(self, a: SSAValue, predicate: str, c: SSAValue) -> SSAValue:
        """Compare scalars, or vectors lane by lane."""
        kind = CmpfOp if isinstance(scalar_of(a.type), AnyFloat) else CmpiOp
        attr = scalar_attr(kind.PREDICATES.index(predicate), i64)
        op = created(kind, [a, c], [truth_of(a.type)], {"predicate": attr})
        return self.add(op).result

    def select(self, truth: SSAValue, a: SSAValue, c: SSAValue) -> SSAValue:
        """Select one of two values, for vectors lane by lane."""
        return self.add(created(SelectOp, [truth, a, c], [a.type])).results[0]

    def shuffle(self, first: SSAValue, second: SSAValue, lanes: Sequence[int]) -> SSAValue:
        """Return a vector of elements selected from two concatenated vectors."""
        type, mask = vector_of(scalar_of(first.type), len(lanes)), {"mask": numbers(i64, tuple(lanes))}
        return self.add(created(vector.ShuffleOp, [first, second], [type], mask)).results[0]

    def joined(self, parts: Sequence[SSAValue]) -> SSAValue:
        """Concatenate vectors of equal size; the number of vectors is a power of two."""
        parts = list(parts)
        while len(parts) > 1:
            type = parts[0].type
            assert is_vector(type)
            size = 2 * type.get_shape()[0]
            parts = [self.shuffle(parts[k], parts[k + 1], range(size)) for k in range(0, len(parts), 2)]
        return parts[0]

    def dot(self, accumulator: SSAValue, data: SSAValue, weights: SSAValue, unsigned: bool) -> SSAValue:
        """Emit the sums of a `DotProduct` of vectors of codes, or of a `HalfProduct` of bf16, as a call of a function
        of the module; `unsigned`: whether the data's codes are."""
        kind = HalfProduct if scalar_of(accumulator.type) == f32 else DotProduct
        return self.product(kind, accumulator, data, weights, unsigned)

    def matrix_product(self, accumulator: SSAValue, data: SSAValue, weights: SSAValue, unsigned: bool) -> SSAValue:
        """Emit `accumulator[b, r, c] + sum over k < 8 of data[r, k] * weights[b, c, k]` for flat vectors, with two rows
        r and, in each block b, two columns c, as a call of a private function of the module
        (`dot_products.MatrixProduct`). `unsigned`: whether the data are."""
        return self.product(MatrixProduct, accumulator, data, weights, unsigned)

    def nibble_product(self, accumulator: SSAValue, data: SSAValue, weights: SSAValue) -> SSAValue:
        """Emit `accumulator[i] + sum over k < 2 of (data[2i + k] & 15) * weights[2i + k]` for vectors of bytes, with
        signed weights and wrapping 16-bit sums, as a call of a function of the module."""
        return self.product(NibbleProduct, accumulator, data, weights, unsigned=True)

    def product(
        self, kind: type[DotProduct], accumulator: SSAValue, data: SSAValue, weights: SSAValue, unsigned: bool
    ) -> SSAValue:
        """Call the module's function for products of class `kind`, which is added if it is missing."""
        sums, codes = accumulator.type, data.type
        assert is_vector(sums) and is_vector(codes)
        key = (kind, id(sums), id(codes), unsigned)
        if (known := self._dots.get(key)) is None:
            function = self.entry.parent_op()
            module = None if function is None else function.parent_op()
            assert isinstance(module, ModuleOp)
            name = declared(module, kind(sums, codes, unsigned))
            self._dots[key] = known = (name, sums, codes)
        call = created(func.CallOp, [accumulator, data, weights], [sums], {"callee": known[0]})
        return self.add(call).results[0]

    def intrinsic(self, name: str, operands: Sequence[SSAValue], type: Attribute) -> SSAValue:
        """Call an LLVM intrinsic."""
        call = created(
            llvm.CallIntrinsicOp,
            operands,
            [type],
            {
                "intrin": text(name),
                "fastmathFlags": NO_FAST_MATH,
                "op_bundle_sizes": NO_BUNDLES,
                "operandSegmentSizes": numbers(i32, (len(operands), 0)),
            },
        )
        return self.add(call).results[0]


class Before(LoopBuilder):
    """A builder that inserts ops before a given op."""

    def __init__(self, op: Operation):
        block = op.parent
        assert isinstance(block, Block)
        super().__init__(block)
        self.anchor, self.location = op, op.location

    def add(self, op: OperationInvT) -> OperationInvT:
        """Insert an op before the op that was given to the constructor, with its location, and return it."""
        op.location = self.anchor.location
        self.block.insert_op_before(op, self.anchor)
        return op


class Loop:
    """The values carried by a loop: `args` at the start of an iteration, `next` (set by the body) at its end, `results`
    after the loop."""

    def __init__(self, args: list[SSAValue]):
        self.args = args
        self.next: list[SSAValue] = list(args)
        self.results: list[SSAValue] = list(args)


def contiguous(type: Attribute) -> bool:
    """Whether a memref type is static, row-major and without offset."""
    return is_buffer(type) and isinstance(type.layout, NoneAttr) and DYNAMIC_INDEX not in type.get_shape()
