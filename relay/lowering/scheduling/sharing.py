"""What several cores move that one core would not: written on loops as they are emitted, priced by `parallelize`.

Where threads share the pixels of a contraction, every core reads all weights; where they share the blocks of channels,
every core reads all data, half of which another one has just written, and cores write to the same cache lines of the
result in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.bufferization import ToBufferOp
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, i64
from xdsl.ir import Attribute, SSAValue

from relay.dialects.attributes import dtype_of
from relay.lowering.scheduling.contraction import Convolution
from relay.lowering.shaped import at_most, buffer_of, is_buffer, shape_of
from relay.target import CpuCosts


def of_pixels(conv: Convolution, channels: int) -> DictionaryAttr:
    """The pixels, whose products are of so many channels: `{weights = 512}`, in bytes."""
    return traffic(weights=size_of(conv.kernel.value) * at_most(channels) // at_most(conv.outputs))


def of_blocks(conv: Convolution, channels: int, itemsize: int) -> DictionaryAttr:
    """Blocks of so many channels of results of this size: `{data = 4096, pixels = 49, pixel = 16}`: the bytes of all
    data, the pixels of the result, and the bytes of each that one block writes."""
    points = at_most(conv.images) * at_most(conv.out_rows) * at_most(conv.out_columns)
    return traffic(data=size_of(conv.data.value), pixels=points, pixel=channels * itemsize)


def traffic(**counts: int) -> DictionaryAttr:
    """An attribute with these counts by name."""
    return DictionaryAttr({name: IntegerAttr(count, i64) for name, count in counts.items()})


def cycles(mark: Attribute, costs: CpuCosts) -> int:
    """The cost in cycles of running turns with this mark on several cores."""
    if isinstance(mark, IntegerAttr):
        return mark.value.data
    if not isinstance(mark, DictionaryAttr):
        return 0
    counts = {name: count.value.data for name, count in mark.data.items() if isinstance(count, IntegerAttr)}
    lines = counts.get("pixels", 0) if counts.get("pixel", 0) % costs.cache_line else 0
    read = counts.get("weights", 0) / 2 / costs.third_level_bandwidth
    return round(read + counts.get("data", 0) / 2 / costs.remote_bandwidth + lines * costs.contended_line)


def of_reading(costs: CpuCosts, values: Sequence[SSAValue]) -> int:
    """Cycles more for one core to read these, as far as they are buffers of several cores and not constants."""
    buffers = [value for value in values if is_buffer(value.type) and not isinstance(value.owner, ToBufferOp)]
    return round(sum(map(size_of, buffers)) / 2 / costs.small_remote_bandwidth)


def size_of(buffer: SSAValue) -> int:
    """The bytes of a buffer."""
    return prod(map(at_most, shape_of(buffer))) * itemsize(buffer)


def itemsize(buffer: SSAValue) -> int:
    """The bytes of an element."""
    return dtype_of(buffer_of(buffer).element_type).itemsize
