"""Imports RFFT2D along the last axis if only the real part is used, as in short-time spectra of audio models.

The real part is a matrix product with cosines. As `cos` is even, the samples `n` and `N - n` are added first, which
halves the product.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from relay.dialects.relay import AddOp, DenseOp, ReverseOp
from relay.frontend.importing.paddings import padded
from relay.frontend.tflite.builder import Importer
from relay.frontend.tflite.model import Subgraph
from relay.frontend.tflite.node import FLOATS, Node
from relay.frontend.tflite.table import operator

LONGEST = 4096
"""The maximum number N of samples of a transform; the matrix of cosines has about N^2 / 4 elements."""
MOVES = ("SQUEEZE", "RESHAPE", "EXPAND_DIMS", "TRANSPOSE")
"""Operators that exporters write between RFFT2D and the cast to reals; they apply to real parts as to complex
numbers."""


def real_parts(graph: Subgraph) -> Subgraph:
    """The graph with complex tensors replaced by float32 ones, if only their real parts are used in the end."""
    waves = {tensor.index for tensor in graph.tensors if tensor.type == "COMPLEX64"}
    if not waves or not waves.isdisjoint((*graph.inputs, *graph.outputs)):
        return graph
    for each in graph.operators:
        given, made = not waves.isdisjoint(each.inputs), not waves.isdisjoint(each.outputs)
        if (made and each.kind not in ("RFFT2D", *MOVES)) or (given and each.kind not in ("CAST", *MOVES)):
            return graph
        if given and each.kind == "CAST" and graph.tensors[each.outputs[0]].type != "FLOAT32":
            return graph
    tensors = tuple(replace(t, type="FLOAT32") if t.index in waves else t for t in graph.tensors)
    return replace(graph, tensors=tensors)


@operator("RFFT2D", versions=(1, 1), inputs=(2, 2))
def rfft2d(importer: Importer, node: Node) -> list[SSAValue]:
    """Import the real part of an RFFT2D along the last axis: the sum of `x[n] cos(2 pi k n / N)` over n, for k from 0
    to N / 2. Rows are cropped or zero-padded to N samples."""
    data, lengths, out = node.input(0), node.numbers(node.input(1)), node.output()
    node.one_type(FLOATS, data, out)
    if len(lengths) != 2 or lengths[0] != 1 or len(data.shape) < 2 or data.shape[-2] != 1:
        raise node.unsupported(f"a transform of {lengths} of shape {data.shape}", "it must be along the last axis")
    count = lengths[1]
    if not 2 <= count <= LONGEST or count & (count - 1):
        raise node.unsupported(f"a transform of {count} samples", f"powers of 2 from 2 to {LONGEST} are")
    *lead, width = data.shape
    rows = int(np.prod(lead, dtype=np.int64))
    half = count // 2
    lines = importer.reshape(importer.value(data), [rows, width])
    if width > count:
        lines = importer.slice(lines, {1: (0, count)})
    elif width < count:
        lines = padded(importer, lines, {1: (0, count - width)})
    folded = importer.slice(lines, {1: (0, half + 1)})
    if half > 1:
        rest = importer.call(ReverseOp, importer.slice(lines, {1: (half + 1, count)}), axis=[1])
        folded = importer.call(AddOp, folded, padded(importer, rest, {1: (1, 1)}))
    places = np.arange(half + 1, dtype=np.int64)
    cosines = np.cos(2 * np.pi / count * (np.multiply.outer(places, places) % count)).astype(np.float32)
    result = importer.call(DenseOp, folded, importer.unnamed(cosines), out_dtype=f32)
    return [importer.reshape(result, [*lead, half + 1])]
