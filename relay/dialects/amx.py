"""MLIR's `amx` dialect, restricted to matrix products of quantized values: tiles of up to 16 rows of 64 bytes.

A tile lies in a tile register of an x86 processor. Names, operands, properties and syntax are upstream's (MLIR 22)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, FixedBitwidthType, IndexType, IntAttr, MemRefType, UnitAttr, i8, i32
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    BaseAttr,
    IRDLOperation,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    result_def,
    var_operand_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

MOST_ROWS = 16
"""Rows of a tile, at most."""
ROW = 64
"""Bytes of a row of a tile register, at most."""
WORD = 4
"""Bytes of one i32 sum; also how many quantized values of a column are adjacent in a tile of weights."""


@irdl_attr_definition
class TileType(ParametrizedAttribute, TypeAttribute):
    """`!amx.tile<16x64xi8>`: the type of the contents of a tile register."""

    name = "amx.tile"
    shape: ArrayAttr[IntAttr]
    element_type: Attribute

    @classmethod
    def of(cls, rows: int, columns: int, element: Attribute) -> TileType:
        """Return the tile type of `rows` by `columns` elements."""
        return cls(ArrayAttr([IntAttr(rows), IntAttr(columns)]), element)

    @property
    def rows(self) -> int:
        return self.shape.data[0].data

    @property
    def columns(self) -> int:
        return self.shape.data[1].data

    @property
    def row_bytes(self) -> int:
        """The size of one row in bytes."""
        assert isinstance(self.element_type, FixedBitwidthType)
        return self.columns * self.element_type.bitwidth // 8

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            dims, element = parser.parse_ranked_shape()
        return [ArrayAttr([IntAttr(dim) for dim in dims]), element]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            for dim in self.shape:
                printer.print_string(f"{dim.data}x")
            printer.print_attribute(self.element_type)

    def verify(self) -> None:
        if len(self.shape) != 2 or self.element_type not in (i8, i32):
            raise VerifyException("amx.tile: only rows and columns of i8 and i32 are known here")
        if not 0 < self.rows <= MOST_ROWS or not 0 < self.row_bytes <= ROW or self.row_bytes % WORD:
            most = f"up to {MOST_ROWS} rows of up to {ROW} bytes in whole words"
            raise VerifyException(f"amx.tile: {self} is not {most}")


@irdl_op_definition
class TileLoadOp(IRDLOperation):
    """Load a tile: row r is read from `base`, starting r times `stride` elements after `indices`."""

    name = "amx.tile_load"
    base = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    stride = opt_operand_def(IndexType)
    res = result_def(TileType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = "$base `[` $indices `]` (`,` $stride^)? attr-dict `:` type($base) `into` type($res)"

    def __init__(self, base: SSAValue, index: SSAValue, stride: SSAValue, type: TileType):
        super().__init__(operands=[base, [index], [stride]], result_types=[type])


@irdl_op_definition
class TileStoreOp(IRDLOperation):
    """Store a tile: row r is written to `base`, starting r times `stride` elements after `indices`."""

    name = "amx.tile_store"
    base = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    val = operand_def(TileType)
    stride = opt_operand_def(IndexType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = "$base `[` $indices `]` `,` $val (`,` $stride^)? attr-dict `:` type($base) `,` type($val)"

    def __init__(self, base: SSAValue, index: SSAValue, value: SSAValue, stride: SSAValue):
        super().__init__(operands=[base, [index], value, [stride]])


@irdl_op_definition
class TileMulIOp(IRDLOperation):
    """`res[m, n] = acc[m, n] + sum over k of lhs[m, k] * rhs[k / 4, 4 n + k mod 4]`, wrapping. Elements are signed;
    `isZextLhs` or `isZextRhs` makes those of one operand unsigned."""

    name = "amx.tile_muli"
    SUMS: ClassVar = VarConstraint("SUMS", BaseAttr(TileType))
    lhs = operand_def(TileType)
    rhs = operand_def(TileType)
    acc = operand_def(SUMS)
    isZextLhs = opt_prop_def(UnitAttr)
    isZextRhs = opt_prop_def(UnitAttr)
    res = result_def(SUMS)
    assembly_format = (
        "$lhs (`zext` $isZextLhs^)? `,` $rhs (`zext` $isZextRhs^)? `,` $acc attr-dict"
        " `:` type($lhs) `,` type($rhs) `,` type($acc)"
    )

    def __init__(self, lhs: SSAValue, rhs: SSAValue, acc: SSAValue, *, unsigned: bool):
        """Multiply data (`lhs`, unsigned if `unsigned`) by signed weights (`rhs`), and add `acc`."""
        properties = {"isZextLhs": UnitAttr()} if unsigned else {}
        super().__init__(operands=[lhs, rhs, acc], result_types=[acc.type], properties=properties)

    def verify_(self) -> None:
        a, b, c = (value.type for value in self.operands)
        assert isinstance(a, TileType) and isinstance(b, TileType) and isinstance(c, TileType)
        kinds = a.element_type == b.element_type == i8 and c.element_type == i32
        if not kinds or (a.rows, b.columns, a.columns) != (c.rows, c.columns * WORD, b.rows * WORD):
            raise VerifyException(f"amx.tile_muli: {a} by {b} is not {c}")


Amx = Dialect("amx", [TileLoadOp, TileStoreOp, TileMulIOp], [TileType])
