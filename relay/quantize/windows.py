"""The geometry of a layer's input windows in plain numbers, so that it can be sent to other processes."""

from __future__ import annotations

from relay.dialects import relay
from relay.dialects.attributes import int_values
from relay.dialects.op import four, shape, two
from relay.quantize import marks
from relay.quantize.layers import Layer
from relay.quantize.worker import Window


def window_of(layer: Layer) -> Window | None:
    """The geometry of the windows of its input that the layer multiplies with weights; None if the input is not among
    the tensors whose values calibration observes."""
    anchor = layer.anchor
    name = marks.name_of(anchor.data)
    if name is None:
        return None
    if isinstance(anchor, relay.DenseOp):
        return Window(name)
    kernel = shape(anchor.kernel)
    return Window(
        name,
        two(kernel[:2] if anchor.depthwise else kernel[1:3], "kernel"),
        two(int_values(anchor.strides), "strides"),
        four(int_values(anchor.padding), "padding"),
        two(int_values(anchor.dilation), "dilation"),
        anchor.groups.value.data,
    )
