"""Reads scales and zero points of nodes, and applies the import functions of other operators to given values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx
from onnx import helper
from xdsl.ir import SSAValue

from relay.dialects.attributes import Array
from relay.frontend.importing.formulas import Scalar
from relay.frontend.importing.fused import Codes
from relay.frontend.onnx.builder import Importer
from relay.frontend.onnx.node import Node
from relay.frontend.onnx.table import Convert, row

TO_EVEN = float(np.float32(1.5 * 2**23))
"""A number that, added to a float32 below 2^22 in magnitude and subtracted again, rounds it to the nearest integer with
halves to even."""


def scales_of(node: Node, number: int) -> Array:
    """A constant scale as a float32 vector."""
    found = node.array(number).astype(np.float32).reshape(-1)
    if not found.size or not bool(np.isfinite(found).all() and (found > 0).all()):
        raise node.unsupported(f"the scale of input {number} is not positive")
    return found


def codes_of(importer: Importer, node: Node, data: int, scale: int, zero_point: int) -> Codes:
    """The quantization parameters in the inputs with the indices `scale` and `zero_point`, for quantized values that
    have the type of the input with index `data`."""
    scales = scales_of(node, scale)
    zeros = np.zeros(1) if node.optional(zero_point) is None else node.array(zero_point).reshape(-1)
    if scales.size != 1 or zeros.size != 1:
        raise node.unsupported(f"input {scale} has {scales.size} scales", "give one")
    dtype = importer.dtype(node.input(data))
    if dtype.kind not in "iu":
        raise node.malformed(f"input {data} is of {dtype}, which is no type of codes")
    return Codes(np.float32(scales[0]), int(zeros[0]), dtype)


def result_codes(importer: Importer, node: Node, scale: int) -> Codes:
    """The quantization parameters of the result: `scale` is the index of the input with its scale, the next input is
    its zero point and has its type. Without a zero point, the type is that of input 0."""
    given = node.optional(scale + 1) is not None
    return codes_of(importer, node, scale + 1 if given else 0, scale, scale + 1)


def channels_first(importer: Importer, value: SSAValue) -> SSAValue:
    """An image with channels last, transposed to have channels first."""
    rank = importer.rank(value)
    return importer.transpose(value, (0, rank - 1, *range(1, rank - 1)))


def channels_last(importer: Importer, value: SSAValue) -> SSAValue:
    """An image with channels first, transposed to have channels last."""
    return importer.transpose(value, (0, *range(2, importer.rank(value)), 1))


def either_layout(convert: Convert) -> Convert:
    """Wrap an import function for channels-first data so that it handles nodes whose attribute states the layout."""

    def converted(importer: Importer, node: Node) -> SSAValue | Sequence[SSAValue]:
        if not node.integer("channels_last", 0):
            return convert(importer, node)
        first = channels_first(importer, node.input(0))
        attributes = {name: each for name, each in node.attributes.items() if name != "channels_last"}
        found = convert(importer, replace(node, attributes=attributes, values=(first, *node.values[1:])))
        return channels_last(importer, found if isinstance(found, SSAValue) else found[0])

    return converted


def plain(
    importer: Importer,
    node: Node,
    kind: str,
    values: Sequence[SSAValue | None],
    attributes: Mapping[str, object] | None = None,
) -> SSAValue:
    """The result of the standard operator `kind` applied to `values`. Its attributes are `attributes`, or the node's
    own if None."""
    version = importer.frame.opsets.get("", 21)
    convert = row("", kind, version)
    if convert is None:
        raise node.unsupported(f"{kind} is not supported")
    proto = onnx.NodeProto(op_type=kind, name=node.proto.name, output=node.proto.output[:1])
    node = replace(node, proto=proto, domain="", version=version, values=tuple(values))
    if attributes is not None:
        node = replace(node, attributes={name: helper.make_attribute(name, each) for name, each in attributes.items()})
    found = convert(importer, node)
    return found if isinstance(found, SSAValue) else found[0]


def nearest(importer: Importer, value: SSAValue) -> SSAValue:
    """Round float32 to the nearest integer, halves to even, and clip it to +-2^21."""
    x = Scalar(importer, value).between(-(2.0**21), 2.0**21)
    return (x + TO_EVEN - TO_EVEN).value
