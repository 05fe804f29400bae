"""What it costs the two levels of a contraction's loops to have their turns on several cores, beside the work itself.

Where threads share the pixels, every core reads all weights; where they share the blocks of channels, every core reads
all data, half of which another one has just written, and cores write to the same cache lines of the result in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.bufferization import ToBufferOp
from xdsl.ir import SSAValue

from relay.dialects.attributes import dtype_of
from relay.lowering.scheduling.contraction import Convolution
from relay.lowering.shaped import buffer_of, is_buffer, shape_of
from relay.target import CpuCosts


def of_pixels(costs: CpuCosts, conv: Convolution, channels: int) -> int:
    """Cycles more for the pixels, whose products are of so many channels."""
    return round(size_of(conv.kernel.value) * channels / conv.outputs / 2 / costs.third_level_bandwidth)


def of_blocks(costs: CpuCosts, conv: Convolution, channels: int, itemsize: int) -> int:
    """Cycles more for blocks of so many channels of results of this size."""
    lines = conv.images * conv.out_rows * conv.out_columns if channels * itemsize % costs.cache_line else 0
    return round(size_of(conv.data.value) / 2 / costs.remote_bandwidth + lines * costs.contended_line)


def of_reading(costs: CpuCosts, values: Sequence[SSAValue]) -> int:
    """Cycles more for one core to read these, as far as they are buffers of several cores and not constants."""
    buffers = [value for value in values if is_buffer(value.type) and not isinstance(value.owner, ToBufferOp)]
    return round(sum(map(size_of, buffers)) / 2 / costs.small_remote_bandwidth)


def size_of(buffer: SSAValue) -> int:
    """Bytes."""
    return prod(shape_of(buffer)) * dtype_of(buffer_of(buffer).element_type).itemsize
