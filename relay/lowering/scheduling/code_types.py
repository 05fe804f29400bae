"""How weight codes of few bits are decoded: as integers relative to a zero point, or as floats of 4 to 8 bits."""

from __future__ import annotations

from functools import cache

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import ReducedPrecisionFloatType, UnknownLoc, f32, i8, i32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, SSAValue

from relay.dialects.element_types import dtype_of, signed_floats
from relay.lowering.builder import LoopBuilder
from relay.lowering.linalg.contraction import CODES, weight_only_body
from relay.lowering.linalg.emitter import Emitter
from relay.lowering.linalg.narrow import semantics
from relay.lowering.scheduling.body import vector_constant
from relay.target import LANES


def code_type(block: Block) -> Attribute | None:
    """Return the type of the weight codes of a product, recognised from the product's body; None for any other body."""
    found = steps(block)
    return next((type for type in (CODES, *signed_floats()) if found == expected(type)), None)


@cache
def expected(type: Attribute) -> list[object]:
    """Return the description (see `steps`) of the scalar code that adds one term of a product of float data and
    quantized weights of this type to a sum. `code_type` compares the description of a product's body with it."""
    block = Block(arg_types=[f32, i8, f32, i8, f32])
    e = Emitter(block, UnknownLoc())
    block.add_op(linalg.YieldOp(*weight_only_body(type)(e, block.args)))
    return steps(block)


def steps(block: Block) -> list[object]:
    """Describe the computation of a block for comparison: for each op its name, properties and operands. An operand
    that is a constant is described by its value, so that the positions of constants in the block do not matter."""
    known: dict[SSAValue, object] = {value: value.index for value in block.args}
    found = list[object]()
    for op in block.ops:
        if isinstance(op, arith.ConstantOp):
            continue
        sources = [known.get(x) if not isinstance(x.owner, arith.ConstantOp) else x.owner.value for x in op.operands]
        found.append((op.name, dict(op.properties), sources))
        known |= {result: ("op", len(found)) for result in op.results}
    return found


def numbers_of(type: ReducedPrecisionFloatType) -> list[float]:
    """Return the values of the 16 codes of a 4-bit float type."""
    return np.arange(LANES, dtype=np.uint8).view(dtype_of(type)).astype(np.float32).tolist()


def as_float(b: LoopBuilder, words: SSAValue, start: int, type: ReducedPrecisionFloatType) -> SSAValue:
    """Decode the finite floats of few bits that start at bit `start` of each word: shift sign, exponent and fraction to
    their positions in f32, then multiply by the difference of the exponent biases, which is exact for subnormal
    numbers, too."""
    form, width = semantics(type), type.bitwidth
    spread = 8 - form.exponent_bits
    top = 32 - width - start
    if top:
        words = b.add(arith.ShLIOp(words, vector_constant(b, top, i32, LANES))).result
    words = b.add(arith.ShRSIOp(words, vector_constant(b, spread, i32, LANES))).result
    kept = ((1 << (width - 1)) - 1) << (23 - form.mantissa_bits) | 1 << 31
    words = b.add(arith.AndIOp(words, vector_constant(b, kept - (1 << 32), i32, LANES))).result
    scale = vector_constant(b, 2.0 ** (127 - form.exponent_bias), f32, LANES)
    return b.add(arith.MulfOp(b.bitcast(words, f32, LANES), scale)).result
