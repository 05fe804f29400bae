"""Dot products of codes, and of bf16, at the stage of loops: calls of functions whose bodies define the computation.

A processor's dot product instructions take one-dimensional vectors, and upstream has no op that corresponds to them. So
a module has a private function for each kind of dot product. Its body consists of `vector.contract` and casts, and
kernels call it. `select-target-ops` replaces each call by the target's instruction; MLIR's own passes inline the
function instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    VectorType,
    bf16,
    f32,
    i8,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.dialects.vector import BitcastOp, CombiningKindAttr, CombiningKindFlag
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.traits import SymbolTable

from relay.dialects.arith import ExtSIOp, ExtUIOp
from relay.dialects.vector import ContractionOp, IteratorTypeAttr, ShapeCastOp
from relay.lowering.shaped import Vector, is_vector, vector_of

ROWS = 2
"""The number of rows of data, and of columns of weights, of one matrix product."""


@dataclass(frozen=True)
class DotProduct:
    """`result[i] = accumulator[i] + sum over k < group of data[group*i + k] * weights[group*i + k]`, wrapping.

    `data` and `weights` have the type `codes`; weights are signed, and data is signed unless `unsigned`.
    """

    sums: Vector
    codes: Vector
    unsigned: bool

    @property
    def lanes(self) -> int:
        """The number of sums."""
        return self.sums.get_shape()[0]

    @property
    def weights(self) -> Vector:
        """The type of the weights."""
        return self.codes

    @property
    def element(self) -> Attribute:
        """The type of the factors."""
        return self.codes.element_type

    @property
    def group(self) -> int:
        """The number of products in a sum."""
        return self.codes.get_shape()[0] // self.lanes

    @property
    def name(self) -> str:
        """The function's name: `dot_product_16x4_ui8` has 16 sums of four products, of unsigned 8-bit data."""
        return f"dot_product_{self.lanes}x{self.group}_{'u' if self.unsigned else 's'}{self.codes.element_type}"

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """The shapes of data, weights and sums, with axes in the order of the letters of `maps`."""
        square = (self.lanes, self.group)
        return square, square, (self.lanes,)

    @property
    def maps(self) -> tuple[str, str, str]:
        """The dimensions of data, weights and sums, as letters; k is summed over."""
        return "ik", "ik", "i"

    def factors(self, k: int) -> tuple[Sequence[int], Sequence[int]]:
        """Return two sequences with an element for each sum: the lanes of the data and of the weights whose product is
        term number `k` of the sum."""
        lanes = range(k, self.lanes * self.group, self.group)
        return lanes, lanes

    def taken(self, data: SSAValue, weights: SSAValue) -> tuple[Sequence[Operation], Sequence[Operation]]:
        """Return ops that prepare data and weights for the multiplication, such as masks; none by default."""
        return [], []

    @property
    def extensions(self) -> Sequence[type[ExtUIOp | ExtSIOp | arith.ExtFOp]]:
        """The ops that extend data and weights to the type of the sums."""
        return ExtUIOp if self.unsigned else ExtSIOp, ExtSIOp

    def function(self) -> FuncOp:
        """Return a function that computes the product."""
        types = [self.sums, self.codes, self.weights]
        function = FuncOp(self.name, (types, [self.sums]), visibility="private")
        block, (data, weights, sums) = function.body.block, self.shapes
        for argument, name in zip(block.args, ("accumulator", "data", "weights"), strict=True):
            argument.name_hint = name

        def cast(value: SSAValue, shape: Sequence[int]) -> Operation:
            type = value.type
            assert is_vector(type)
            return ShapeCastOp.create(operands=[value], result_types=[VectorType(type.element_type, shape)])

        first = self.taken(*block.args[1:])
        factors = [ops[-1].results[0] if ops else given for ops, given in zip(first, block.args[1:], strict=True)]
        casts = [cast(factor, shape) for factor, shape in zip(factors, (data, weights), strict=True)]
        wide = [
            kind(each.results[0], VectorType(self.sums.element_type, shape))
            for kind, each, shape in zip(self.extensions, casts, (data, weights), strict=True)
        ]
        before = [] if len(sums) == 1 else [cast(block.args[0], sums)]
        accumulator = before[0].results[0] if before else block.args[0]
        order = [letter for letter in self.maps[2]] + ["k"]
        kinds = [IteratorType.PARALLEL] * (len(order) - 1) + [IteratorType.REDUCTION]
        contraction = ContractionOp.create(
            operands=[*(each.result for each in wide), accumulator],
            result_types=[accumulator.type],
            properties={
                "indexing_maps": ArrayAttr(AffineMapAttr(selection(order, letters)) for letters in self.maps),
                "iterator_types": ArrayAttr(map(IteratorTypeAttr, kinds)),
                "kind": CombiningKindAttr(CombiningKindFlag.ADD),
            },
        )
        after = [cast(contraction.result, self.sums.get_shape())] if before else []
        result = after[0].results[0] if after else contraction.result
        block.add_ops([*first[0], *first[1], *casts, *wide, *before, contraction, *after, ReturnOp(result)])
        return function


@dataclass(frozen=True)
class MatrixProduct(DotProduct):
    """`result[b, r, c] = accumulator[b, r, c] + sum over k < 8 of data[r, k] * weights[b, c, k]`, wrapping: two rows of
    data, two columns of each block of weights."""

    @property
    def blocks(self) -> int:
        """The number of blocks, which are pairs of columns."""
        return self.lanes // (ROWS * ROWS)

    @property
    def weights(self) -> Vector:
        return vector_of(self.codes.element_type, self.blocks * ROWS * self.group)

    @property
    def group(self) -> int:
        return self.codes.get_shape()[0] // ROWS

    @property
    def name(self) -> str:
        """The function's name: `matrix_product_8x2x2x8_ui8` has 8 blocks of two by two sums of eight products, of
        unsigned 8-bit data."""
        sign = "u" if self.unsigned else "s"
        return f"matrix_product_{self.blocks}x{ROWS}x{ROWS}x{self.group}_{sign}{self.codes.element_type}"

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        return (ROWS, self.group), (self.blocks, ROWS, self.group), (self.blocks, ROWS, ROWS)

    @property
    def maps(self) -> tuple[str, str, str]:
        return "rk", "bck", "brc"

    def factors(self, k: int) -> tuple[Sequence[int], Sequence[int]]:
        places = [divmod(lane, ROWS * ROWS) for lane in range(self.lanes)]
        data = [place // ROWS * self.group + k for _, place in places]
        weights = [(block * ROWS + place % ROWS) * self.group + k for block, place in places]
        return data, weights


@dataclass(frozen=True)
class NibbleProduct(DotProduct):
    """`result[i] = accumulator[i] + sum over k < 2 of (data[2i + k] & 15) * weights[2i + k]`, in 16 bits, wrapping."""

    @property
    def name(self) -> str:
        """The function's name: `nibble_product_32x2` has 32 sums of two products."""
        return f"nibble_product_{self.lanes}x{self.group}"

    def taken(self, data: SSAValue, weights: SSAValue) -> tuple[Sequence[Operation], Sequence[Operation]]:
        (lanes,) = self.codes.get_shape()
        mask = arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(VectorType(i8, [lanes]), [15] * lanes))
        return [mask, arith.AndIOp(data, mask.result)], []


@dataclass(frozen=True)
class HalfProduct(DotProduct):
    """`result[i] = accumulator[i] + sum over k < 2 of data[2i + k] * weights[2i + k]` in f32, where data and weights
    are the bits of bf16; instructions may add in any order, and treat subnormal numbers as zeros."""

    @property
    def element(self) -> Attribute:
        return bf16

    @property
    def name(self) -> str:
        """The function's name: `dot_product_16x2_bf16` has 16 sums of two products."""
        return f"dot_product_{self.lanes}x{self.group}_bf16"

    @property
    def extensions(self) -> Sequence[type[ExtUIOp | ExtSIOp | arith.ExtFOp]]:
        return arith.ExtFOp, arith.ExtFOp

    def taken(self, data: SSAValue, weights: SSAValue) -> tuple[Sequence[Operation], Sequence[Operation]]:
        type = VectorType(bf16, self.codes.get_shape())
        return [BitcastOp(data, type)], [BitcastOp(weights, type)]


def selection(dimensions: Sequence[str], letters: str) -> AffineMap:
    """Return the affine map from all dimensions to those named by `letters`."""
    return AffineMap(len(dimensions), 0, tuple(AffineDimExpr(dimensions.index(letter)) for letter in letters))


def declared(module: ModuleOp, dot: DotProduct) -> SymbolRefAttr:
    """Return the name of the module's function that computes this product, which is added if it is missing."""
    new = dot.function()
    for number in count():
        name = dot.name if number == 0 else f"{dot.name}_{number}"
        old = SymbolTable.lookup_symbol(module, name)
        new.properties["sym_name"] = StringAttr(name)
        if old is None:
            module.body.block.add_op(new)
        if old is None or old.is_structurally_equivalent(new):
            return SymbolRefAttr(name)
    raise AssertionError("numbers do not end")


def computed_by(function: FuncOp) -> DotProduct | None:
    """Return the dot product that a function computes, if its body is structurally equal to the one that this module
    generates for that product (`DotProduct.function`); None for any other function."""
    ops = list(function.body.block.ops) if len(function.body.blocks) == 1 else []
    if not any(isinstance(op, ContractionOp) for op in ops) or len(types := function.args) != 3:
        return None
    sums, codes = types[0].type, types[1].type
    if not is_vector(sums) or not is_vector(codes) or not isinstance(codes.element_type, IntegerType):
        return None
    if len(sums.get_shape()) != 1 or len(codes.get_shape()) != 1:
        return None
    lanes = sums.get_shape()[0]
    codes_by = ((DotProduct, lanes), (MatrixProduct, ROWS), (NibbleProduct, lanes))
    for kind, unit in ((HalfProduct, lanes),) if sums.element_type == f32 else codes_by:
        dot = kind(sums, codes, any(isinstance(op, ExtUIOp) for op in ops))
        if codes.get_shape()[0] % unit or (kind is MatrixProduct and dot.lanes % (ROWS * ROWS)):
            continue
        expected = dot.function()
        expected.properties["sym_name"] = function.sym_name
        if expected.is_structurally_equivalent(function):
            return dot
    return None
