"""Writes AMX tile ops: the intrinsics take shapes in rows and bytes, and LLVM configures the tile registers."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from relay.dialects.amx import TileLoadOp, TileMulIOp, TileStoreOp, TileType
from relay.dialects.attributes import dtype_of
from relay.lowering.llvm.function import FunctionWriter, Writer
from relay.lowering.shaped import buffer_of

LOAD, STORE = "llvm.x86.tileloadd64.internal", "llvm.x86.tilestored64.internal"
PRODUCTS = {(False, False): "ssd", (False, True): "sud", (True, False): "usd", (True, True): "uud"}
"""The intrinsic's variant, by whether data and weights are unsigned."""


def tile_of(value: SSAValue) -> TileType:
    """Return the type of a tile value."""
    assert isinstance(value.type, TileType)
    return value.type


def shape(type: TileType) -> str:
    """Return the tile's shape as the first two arguments of an AMX intrinsic, `i16 ROWS, i16 BYTES_PER_ROW`."""
    return f"i16 {type.rows}, i16 {type.row_bytes}"


def place(w: FunctionWriter, op: TileLoadOp | TileStoreOp) -> str:
    """Return the location of a tile in memory as arguments: address, and bytes between rows."""
    assert op.stride is not None
    size, stride = dtype_of(buffer_of(op.base).element_type).itemsize, w.of(op.stride)
    if size != 1:
        stride = str(int(stride) * size) if stride.isdecimal() else w.emit(f"mul nsw i64 {stride}, {size}")
    return f"ptr {w.address(op.base, op.indices)}, i64 {stride}"


def write_tile_load(w: FunctionWriter, op: Operation) -> None:
    """Write the load of a tile from rows of a buffer."""
    assert isinstance(op, TileLoadOp)
    w.declare(LOAD, "x86_amx", "i16, i16, ptr, i64")
    w.define(op.res, f"call x86_amx @{LOAD}({shape(tile_of(op.res))}, {place(w, op)})")


def write_tile_store(w: FunctionWriter, op: Operation) -> None:
    """Write the store of a tile to rows of a buffer."""
    assert isinstance(op, TileStoreOp)
    w.declare(STORE, "void", "i16, i16, ptr, i64, x86_amx")
    w.line(f"call void @{STORE}({shape(tile_of(op.val))}, {place(w, op)}, {w.typed(op.val)})")


def write_tile_muli(w: FunctionWriter, op: Operation) -> None:
    """Write the products of two tiles of codes, added to a tile of sums."""
    assert isinstance(op, TileMulIOp)
    name = f"llvm.x86.tdpb{PRODUCTS[op.isZextLhs is not None, op.isZextRhs is not None]}.internal"
    w.declare(name, "x86_amx", "i16, i16, i16, x86_amx, x86_amx, x86_amx")
    sizes = f"{shape(tile_of(op.acc))}, i16 {tile_of(op.lhs).row_bytes}"
    w.define(op.res, f"call x86_amx @{name}({sizes}, {w.list([op.acc, op.lhs, op.rhs])})")


TILES: dict[str, Writer] = {
    "amx.tile_load": write_tile_load,
    "amx.tile_store": write_tile_store,
    "amx.tile_muli": write_tile_muli,
}
