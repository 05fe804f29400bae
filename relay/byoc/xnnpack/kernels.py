"""The table of all code generators of `xnnpack`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from relay.byoc.kernels import Kernels, Row
from relay.byoc.refusals import mean_refusal
from relay.byoc.xnnpack import arithmetic, images, products, shapes
from relay.byoc.xnnpack.writer import Writer
from relay.dialects import relay


def together(ops: Sequence[Operation]) -> Row[Writer]:
    """The rule that checks and generates a group of ops that become one TFLite operator: a float mean (a sum and a
    division), or an op and the clip that follows it. For other groups, the rule's check refuses."""
    if len(ops) == 2 and isinstance(ops[0], relay.SumOp):
        return Row(mean_refusal, images.write_mean)
    if len(ops) == 2:
        return Row(images.clipped_refusal, images.write_clipped)
    return Row(lambda ops: "no TFLite operator computes these ops together", images.write_clipped)


KERNELS = Kernels(
    "TFLite operator",
    {**arithmetic.ROWS, **shapes.ROWS, **images.ROWS},
    Row(products.refusal, products.write),
    together,
)
