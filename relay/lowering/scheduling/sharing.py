"""The cost of data that several cores transfer and one core would not: loops get it as an attribute when they are
emitted, and `parallelize` converts it to cycles.

If threads share the pixels of a contraction, every core reads all weights; if they share the blocks of channels, every
core reads all data, half of which another core has just written, and cores write to the same cache lines of the result
alternately.
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
    """Return what is transferred if threads share the pixels of a loop that computes `channels` channels of a
    contraction: the bytes of the weights, all of which every core then reads, as `{weights = 512}`."""
    return traffic(weights=size_of(conv.kernel.value) * at_most(channels) // at_most(conv.outputs))


def of_blocks(conv: Convolution, channels: int, itemsize: int) -> DictionaryAttr:
    """Return what is transferred if threads share the blocks of `channels` channels of a contraction, as `{data = 4096,
    pixels = 49, pixel = 16}`: the bytes of all data, the number of result pixels, and the bytes of each pixel that one
    block writes."""
    points = at_most(conv.images) * at_most(conv.out_rows) * at_most(conv.out_columns)
    return traffic(data=size_of(conv.data.value), pixels=points, pixel=channels * itemsize)


def traffic(**counts: int) -> DictionaryAttr:
    """Return the attribute of a loop that says what its iterations transfer if several cores share them: a dictionary
    of numbers of bytes or pixels by name, which `cycles` reads."""
    return DictionaryAttr({name: IntegerAttr(count, i64) for name, count in counts.items()})


def cycles(mark: Attribute, costs: CpuCosts) -> int:
    """Return the extra cycles of running a loop on several cores, from the attribute `mark`, which says what data they
    transfer (as `traffic` makes it): a number of cycles, or a dictionary of bytes and pixels."""
    if isinstance(mark, IntegerAttr):
        return mark.value.data
    if not isinstance(mark, DictionaryAttr):
        return 0
    counts = {name: count.value.data for name, count in mark.data.items() if isinstance(count, IntegerAttr)}
    lines = counts.get("pixels", 0) if counts.get("pixel", 0) % costs.cache_line else 0
    read = counts.get("weights", 0) / 2 / costs.third_level_bandwidth
    return round(read + counts.get("data", 0) / 2 / costs.remote_bandwidth + lines * costs.contended_line)


def of_reading(costs: CpuCosts, values: Sequence[SSAValue]) -> int:
    """Return the extra cycles for one core to read the buffers among these values, if other cores wrote half of their
    bytes; constants are not counted."""
    buffers = [value for value in values if is_buffer(value.type) and not isinstance(value.owner, ToBufferOp)]
    return round(sum(map(size_of, buffers)) / 2 / costs.small_remote_bandwidth)


def size_of(buffer: SSAValue) -> int:
    """Return the size of a buffer in bytes."""
    return prod(map(at_most, shape_of(buffer))) * itemsize(buffer)


def itemsize(buffer: SSAValue) -> int:
    """Return the size in bytes of an element of a buffer."""
    return dtype_of(buffer_of(buffer).element_type).itemsize
