"""The table of all code generators of `onednn`."""

from __future__ import annotations

from relay.byoc.kernels import Kernels, Row
from relay.byoc.onednn import arithmetic, images, products
from relay.byoc.onednn.program import Program
from relay.byoc.onednn.writer import Writer
from relay.byoc.refusals import mean_refusal
from relay.byoc.regions import Region

MEAN = Row(mean_refusal, arithmetic.write_float_mean)
KERNELS = Kernels(
    "oneDNN primitive", {**arithmetic.ROWS, **images.ROWS}, Row(products.refusal, products.write), lambda ops: MEAN
)


def program(region: Region, saturates: bool = False) -> Program:
    """The oneDNN program of a region. `saturates` says that quantized convolutions are not exact on the target, so that
    they are computed in float32. Raises Unsupported, naming the op's location, for an op that is not supported."""
    writer = Writer(region, saturates)
    for kernel in region.kernels:
        KERNELS.write(writer, kernel)
    return writer.finish()
