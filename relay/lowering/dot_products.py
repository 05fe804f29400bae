"""Dot products of codes at the level of loops: calls of functions whose bodies say what they compute.

Upstream has no op that is what processors do in one instruction, on vectors of one dimension. So a module has a private
function for each kind of dot product, of `vector.contract` and casts, and kernels call it where they need one;
`select-target-ops` puts the target's instruction in the place of each call, and MLIR's own passes inline the function.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, IntegerType, ModuleOp, StringAttr, SymbolRefAttr, VectorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.dialects.vector import CombiningKindAttr, CombiningKindFlag
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineMap
from xdsl.traits import SymbolTable

from relay.dialects.arith import ExtSIOp, ExtUIOp
from relay.dialects.vector import ContractionOp, IteratorTypeAttr, ShapeCastOp
from relay.lowering.shaped import Vector, is_vector

LAST = 2
"""From the end of such a function: its contraction, before the return."""


@dataclass(frozen=True)
class DotProduct:
    """`result[i] = accumulator[i] + sum over k < group of data[group*i + k] * weights[group*i + k]`, wrapping.

    `data` and `weights` have the type `codes`; weights are signed, and data unless it is `unsigned`.
    """

    sums: Vector
    codes: Vector
    unsigned: bool

    @property
    def lanes(self) -> int:
        """How many sums."""
        return self.sums.get_shape()[0]

    @property
    def group(self) -> int:
        """Products of a sum."""
        return self.codes.get_shape()[0] // self.lanes

    @property
    def name(self) -> str:
        """`dot_product_16x4_ui8`: 16 sums of four products, of unsigned data in 8 bits."""
        sign = "u" if self.unsigned else "s"
        return f"dot_product_{self.lanes}x{self.group}_{sign}{self.codes.element_type}"

    def function(self) -> FuncOp:
        """The function that computes it."""
        function = FuncOp(self.name, ([self.sums, self.codes, self.codes], [self.sums]), visibility="private")
        block, shape = function.body.block, [self.lanes, self.group]
        accumulator, *codes = block.args
        for argument, name in zip(block.args, ("accumulator", "data", "weights"), strict=True):
            argument.name_hint = name
        squares: list[Attribute] = [VectorType(type.element_type, shape) for type in (self.codes, self.sums)]
        casts = [ShapeCastOp.create(operands=[value], result_types=[squares[0]]) for value in codes]
        kinds = (ExtUIOp if self.unsigned else ExtSIOp, ExtSIOp)
        wide = [kind(cast.result, squares[1]) for kind, cast in zip(kinds, casts, strict=True)]
        both, sum = AffineMapAttr(AffineMap.identity(2)), AffineMapAttr(AffineMap.from_callable(lambda i, k: (i,)))
        contraction = ContractionOp.create(
            operands=[*(each.result for each in wide), accumulator],
            result_types=[self.sums],
            properties={
                "indexing_maps": ArrayAttr([both, both, sum]),
                "iterator_types": ArrayAttr(map(IteratorTypeAttr, (IteratorType.PARALLEL, IteratorType.REDUCTION))),
                "kind": CombiningKindAttr(CombiningKindFlag.ADD),
            },
        )
        block.add_ops([*casts, *wide, contraction, ReturnOp(contraction.result)])
        return function


def declared(module: ModuleOp, dot: DotProduct) -> SymbolRefAttr:
    """The name of the module's function that computes this; one is added if the module has none."""
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
    """The dot product that a function computes, op by op as `declared` writes it; None if it is another function."""
    ops = list(function.body.block.ops) if len(function.body.blocks) == 1 else []
    if len(ops) < LAST or not isinstance(ops[-LAST], ContractionOp) or len(types := function.args) != 3:
        return None
    sums, codes = types[0].type, types[1].type
    if not is_vector(sums) or not is_vector(codes) or not isinstance(codes.element_type, IntegerType):
        return None
    dot = DotProduct(sums, codes, any(isinstance(op, ExtUIOp) for op in ops))
    if len(sums.get_shape()) != 1 or len(codes.get_shape()) != 1 or codes.get_shape()[0] % dot.lanes:
        return None
    expected = dot.function()
    expected.properties["sym_name"] = function.sym_name
    return dot if expected.is_structurally_equivalent(function) else None
