"""Tables of 256 codes, read for a whole vector of codes at a time by the byte shuffles of the target.

x86 shuffles 16 bytes, by the low four bits of each index, and gives 0 where an index is negative. So with the table in
pieces of 16, `t[k]`, the pieces `t[k] ^ t[k - 1]` are read one after the other with indices that fall by 16 each time,
saturating: their exclusive or is `t[index / 16]`, since what has become negative gives 0. Indices of 128 and more are
negative from the start; their half of the table is read with the highest bit turned, in the same way. AArch64 reads
64 bytes by one instruction, which leaves lanes as they are whose index is outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import i8, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Operation, SSAValue

from relay.dialects.arith import ExtUIOp
from relay.lowering.builder import INDEX, LoopBuilder, contiguous
from relay.lowering.scheduling.affine import is_identity
from relay.lowering.scheduling.body import vector_constant
from relay.lowering.scheduling.saturate import constant_of
from relay.lowering.shaped import buffer_of, shape_of, vector_of

PIECE = 16
PIECES = 16
SHUFFLES = (
    (64, frozenset({"avx512f", "avx512bw"}), "llvm.x86.avx512.pshuf.b.512"),
    (32, frozenset({"avx2"}), "llvm.x86.avx2.pshuf.b"),
    (16, frozenset({"ssse3"}), "llvm.x86.ssse3.pshuf.b.128"),
    (16, frozenset({"neon"}), "llvm.aarch64.neon.tbl4.v16i8"),
)
"""Lanes, what the target must have, and the shuffle."""
OTHERWISE = "llvm.aarch64.neon.tbx4.v16i8"
"""What leaves lanes as they are whose index is outside."""


def reads_tables(features: frozenset[str]) -> bool:
    """Whether the target reads a table for many codes at once."""
    return any(needed <= features for _, needed, _ in SHUFFLES)


@dataclass(frozen=True)
class Lookup:
    """`result[i] = table[code[i] - lowest code]`."""

    codes: SSAValue
    result: SSAValue
    table: SSAValue
    signed: bool


def recognise_lookup(op: linalg.GenericOp) -> Lookup | None:
    """The table lookup that the operation is, and nothing else."""
    if len(op.inputs) != 1 or len(op.outputs) != 1:
        return None
    if any(kind.data is not IteratorType.PARALLEL for kind in op.iterator_types):
        return None
    codes, result = op.inputs[0], op.outputs[0]
    if not all(is_identity(m.data, len(op.iterator_types)) for m in op.indexing_maps):
        return None
    if not all(contiguous(v.type) and buffer_of(v).element_type == i8 for v in (codes, result)):
        return None
    block, end = op.body.block, op.body.block.last_op
    load = None if end is None else end.operands[0].owner
    if not isinstance(load, memref.LoadOp) or len(load.indices) != 1 or shape_of(load.memref) != (256,):
        return None
    if buffer_of(load.memref).element_type != i8 or not contiguous(load.memref.type):
        return None
    cast = load.indices[0].owner
    if not isinstance(cast, arith.IndexCastOp) or not isinstance(wide := cast.input.owner, Operation):
        return None
    name = "arith.extui"
    if isinstance(wide, arith.AddiOp):
        if constant_of(wide.rhs) != 128:
            return None
        name, wide = "arith.extsi", wide.lhs.owner
    if not isinstance(wide, Operation) or wide.name != name or wide.operands[0] is not block.args[0]:
        return None
    return Lookup(codes, result, load.memref, name == "arith.extsi")


def emit_lookup(b: LoopBuilder, op: linalg.GenericOp, features: frozenset[str]) -> bool:
    """Emit the operation if it is a lookup that the target can do in vectors; False, and nothing is emitted, if not."""
    found = recognise_lookup(op)
    every = [(lanes, name) for lanes, needed, name in SHUFFLES if needed <= features]
    if found is None or not every or shape_of(b.flatten(found.result))[0] < PIECE:
        return False
    codes, result = b.flatten(found.codes), b.flatten(found.result)
    size, start = shape_of(result)[0], 0
    for lanes, name in every:
        end = size // lanes * lanes
        if start < end:
            table = Table(b, found, lanes, name)
            with b.loop(start, end, lanes, independent=True) as (k, _):
                b.vector_store(table.read(b.vector_load(codes, [k], lanes)), result, [k])
            start = end
    with b.loop(start, size) as (k, _):
        if start < size:
            b.store(scalar(b, found, b.load(codes, [k])), result, [k])
    return True


def scalar(b: LoopBuilder, lookup: Lookup, code: SSAValue) -> SSAValue:
    """The entry of one code."""
    if lookup.signed:
        code = b.add(arith.XOrIOp(code, b.constant(-128, i8))).result
    at = b.add(arith.IndexCastOp(b.add(ExtUIOp(code, i32)).result, INDEX)).result
    return b.load(lookup.table, [at])


class Table:
    """The table in registers, for vectors of `lanes` codes."""

    def __init__(self, b: LoopBuilder, lookup: Lookup, lanes: int, shuffle: str):
        self.b, self.lanes, self.shuffle, self.signed = b, lanes, shuffle, lookup.signed
        self.type = vector_of(i8, lanes)
        pieces = [b.vector_load(lookup.table, [k * PIECE], PIECE) for k in range(PIECES)]
        if not self.of_64:
            half = PIECES // 2
            before = [None, *pieces[: half - 1], None, *pieces[half:-1]]
            pieces = [
                piece if other is None else b.add(arith.XOrIOp(piece, other)).result
                for piece, other in zip(pieces, before, strict=True)
            ]
        order = [lane % PIECE for lane in range(lanes)]
        self.pieces = pieces if lanes == PIECE else [b.shuffle(piece, piece, order) for piece in pieces]

    @property
    def of_64(self) -> bool:
        """Whether an instruction reads 64 bytes."""
        return "neon" in self.shuffle

    def constant(self, value: int) -> SSAValue:
        return vector_constant(self.b, value, i8, self.lanes)

    def read(self, codes: SSAValue) -> SSAValue:
        """The entries of a vector of codes."""
        turned = self.b.add(arith.XOrIOp(codes, self.constant(-128))).result
        low, high = (turned, codes) if self.signed else (codes, turned)
        if self.of_64:
            return self.read_64(low)
        half = PIECES // 2
        first, second = self.cascade(low, self.pieces[:half]), self.cascade(high, self.pieces[half:])
        return self.b.add(arith.XOrIOp(first, second)).result

    def cascade(self, index: SSAValue, pieces: Sequence[SSAValue]) -> SSAValue:
        """Eight pieces: the entries of indices from 0 to 127, 0 for others."""
        b, name = self.b, f"llvm.ssub.sat.v{self.lanes}i8"
        total = b.intrinsic(self.shuffle, [pieces[0], index], self.type)
        for piece in pieces[1:]:
            index = b.intrinsic(name, [index, self.constant(PIECE)], self.type)
            total = b.add(arith.XOrIOp(total, b.intrinsic(self.shuffle, [piece, index], self.type))).result
        return total

    def read_64(self, index: SSAValue) -> SSAValue:
        """Four times 64 bytes."""
        b, total = self.b, None
        for first in range(0, PIECES, 4):
            if total is None:
                total = b.intrinsic(self.shuffle, [*self.pieces[:4], index], self.type)
                continue
            index = b.add(arith.SubiOp(index, self.constant(64))).result
            total = b.intrinsic(OTHERWISE, [total, *self.pieces[first : first + 4], index], self.type)
        assert total is not None
        return total
