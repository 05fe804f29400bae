"""What is made of several ops of `sfx`."""

from relay.transforms.legalization import Legalization
from relay_sfx.ops import DequantizeOp, QuantizeOp


class Cancel(Legalization):
    """sfx.quantize (sfx.dequantize %x)  =>  %x, of the same exponents, where the codes have so many bits"""

    def match_and_rewrite(self, op, rewriter):
        if not isinstance(op, QuantizeOp) or not isinstance(source := op.input.owner, DequantizeOp):
            return
        same = (op.exponents, op.axis) == (source.exponents, source.axis)
        if same and op.result.type == source.input.type and op.bits.value.data in (8, 16):
            rewriter.replace(op, [], [source.input])


PATTERNS = [Cancel]
