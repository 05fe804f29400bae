"""Products with weights, embeddings, and layers that give their input back. Source: keras/src/layers/core.

Quantized ones multiply codes: `code = clamp(rint(x * (127 / (max |x| + epsilon))), -127, 127)` for each row, found at
run time; the sum of products of codes in 32 bits, divided by the product of both scales.
"""

from __future__ import annotations

from math import prod

import numpy as np
from xdsl.dialects.builtin import f32, i8, i32
from xdsl.ir import SSAValue

from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.frontend.importing.formulas import Scalar, nearest_even
from relay.frontend.importing.products import einsum
from relay.frontend.keras.builder import Importer
from relay.frontend.keras.node import Layer, is_row
from relay.frontend.keras.operators.activations import activated
from relay.frontend.keras.table import REFUSED, layer

_WHY = {
    "runs Python code of its own": "Lambda JaxLayer FlaxLayer TorchModuleWrapper TFSMLayer",
    "is for training": "SpectralNormalization",
    "has text or sets of different lengths": "StringLookup IntegerLookup TextVectorization Hashing HashedCrossing "
    "Discretization CategoryEncoding",
    "draws random numbers": "RandomBrightness RandomContrast RandomCrop RandomFlip RandomRotation RandomTranslation "
    "RandomZoom",
    "is recurrent with convolutions": "ConvLSTM1D ConvLSTM2D ConvLSTM3D",
    "runs cells of its own": "RNN",
    "marks steps that layers leave out": "Masking",
}
REFUSED.update((name, why) for why, names in _WHY.items() for name in names.split())
LEVELS = 127.0


@layer("Dropout", "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "AlphaDropout", "GaussianDropout",
       "GaussianNoise", "ActivityRegularization", "Identity")  # fmt: skip
def identity(importer: Importer, node: Layer) -> SSAValue:
    """What changes its input in training only."""
    return node.value()


def _epsilon(node: Layer) -> float:
    """What is added to the largest magnitude of a row. Raises Unsupported for other forms than `quantize` makes."""
    given = node.entry("quantization_config")
    quantizer = given["config"].get("activation_quantizer") if is_row(given) else {"class_name": "AbsMaxQuantizer"}
    if not is_row(quantizer) or quantizer.get("class_name") != "AbsMaxQuantizer":
        raise node.unsupported("multiplies floats by int8 weights", "quantize activations, too: model.quantize('int8')")
    config = quantizer.get("config", {})
    if config.get("value_range", [-127, 127]) != [-127, 127]:
        raise node.unsupported(f"has codes in {config['value_range']}", "-127 to 127 are supported")
    return float(config.get("epsilon", 1e-7))


def _product(importer: Importer, node: Layer, x: SSAValue, kernel: Array, scale: Array | None) -> SSAValue:
    """A matrix times the matrix [inner, columns] of a layer; with the scales of its columns, a product of codes, to
    which each row of the data is quantized."""
    value = importer.weight(node, "kernel", kernel)
    if scale is None:
        return importer.call(relay.MatmulOp, x, value, out_dtype=f32)
    data = Scalar(importer, x)
    most = importer.call(relay.MaxOp, data.of(relay.AbsOp).value, axis=[1], keepdims=True)
    base = Scalar(importer, most) + _epsilon(node)
    own = base.number(LEVELS) / base
    codes = importer.clip(nearest_even(importer, (data * own).value), -LEVELS, LEVELS)
    sums = importer.call(relay.MatmulOp, importer.cast(codes, i8), value, out_dtype=i32)
    factor = Scalar(importer, importer.weight(node, "kernel_scale", scale.reshape(1, -1)))
    return (Scalar(importer, importer.cast(sums, f32)) / (own * factor)).value


@layer("Dense")
def dense(importer: Importer, node: Layer) -> SSAValue:
    return _contracted(importer, node, "...x,xy->...y", "y" if node.flag("use_bias", True) else None)


@layer("EinsumDense")
def einsum_dense(importer: Importer, node: Layer) -> SSAValue:
    return _contracted(importer, node, node.word("equation").replace(" ", ""), node.entry("bias_axes"))


def _contracted(importer: Importer, node: Layer, equation: str, bias_axes: object) -> SSAValue:
    """The input times a kernel: a product of matrices where the axes that are summed are the last of the input."""
    x, names = importer.real(node.value()), ["bias"] * (bias_axes is not None)
    given, _, wanted = equation.partition("->")
    left, _, right = given.partition(",")
    hidden = importer.rank(x) - len(left.replace("...", ""))
    dots = "".join(each for each in "ABCDEFGHIJ" if each not in left)[:hidden] if "..." in left else ""
    left, wanted = left.replace("...", dots), wanted.replace("...", dots)
    shared = "".join(each for each in left if each in right and each not in wanted)
    columns = "".join(each for each in right if each not in shared)
    free = left.removesuffix(shared)
    plain = left == free + shared and sorted(right) == sorted(shared + columns) and wanted == free + columns
    rows = importer.rows(x, len(shared)) if plain and shared else None
    weights = node.weights("kernel", *names, *["kernel_scale"] * node.quantized)
    kernel, bias, scale = weights["kernel"], weights.get("bias"), weights.get("kernel_scale")
    bias = None if bias is None else importer.weight(node, "bias", bias)
    if rows is not None:
        arranged = kernel.transpose([right.index(each) for each in shared + columns])
        tail = arranged.shape[len(shared) :]
        matrix = np.ascontiguousarray(arranged.reshape(-1, prod(tail)))
        found = _product(importer, node, rows, matrix, scale)
        if bias is not None and importer.shape(bias) == tail:
            found, bias = importer.add(found, importer.reshape(bias, [prod(tail)])), None
        found = importer.reshape(found, [*importer.shape(x)[: len(free)], *tail])
    elif scale is not None:
        raise node.unsupported(f"multiplies codes by the equation {equation[:80]!r}", "sum over the last axes")
    else:
        node.static(x)
        found = einsum(importer, f"{left},{right}->{wanted}", [x, importer.weight(node, "kernel", kernel)])
    return activated(importer, node, importer.add(found, bias))


@layer("Embedding")
def embedding(importer: Importer, node: Layer) -> SSAValue:
    """Rows by their numbers; codes of int8 are divided by the scale of their row."""
    weights = node.weights("embeddings", *["embeddings_scale"] * node.quantized)
    x = node.value()
    if importer.dtype(x).name not in ("int32", "int64"):
        x = importer.cast(x, i32)
    found, *scale = (
        importer.call(relay.TakeOp, importer.weight(node, name, each.reshape(len(each), -1)), x, axis=0, mode="clip")
        for name, each in weights.items()
    )
    return importer.call(relay.DivideOp, importer.cast(found, f32), *scale) if scale else found
