"""Quantized operators that TFLite Micro computes differently from TFLite, beyond the options of a `Profile`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.node import Node
from relay.frontend.tflite.table import TABLE, Convert


def relu6(importer: Importer, node: Node) -> Sequence[SSAValue]:
    """Import quantized RELU6: values are clamped to 0..6 in the input's scale; the output's scale is ignored
    (`activations.cc`)."""
    data, out = node.input(0), node.output()
    if data.type != out.type or data.type == "FLOAT32":
        return TABLE["RELU6"].convert(importer, node)
    source = node.codes(data)
    return [importer.clip_codes(importer.value(data), source, node.bounds(source, "RELU6"))]


ROWS: dict[str, Convert] = {"RELU6": relu6}
