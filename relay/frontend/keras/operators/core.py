"""Products with weights, embeddings, and layers that give their input back. Source: keras/src/layers/core.

Quantized ones multiply codes: `code = clamp(rint(x * (127 / (max |x| + epsilon))), -127, 127)` for each row, found at
run time; the sum of products of codes in 32 bits, divided by the product of both scales.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import f32, i8, i32
from xdsl.ir import SSAValue

from relay.dialects import relay
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
    given = node.config.get("quantization_config")
    quantizer = given["config"].get("activation_quantizer") if is_row(given) else {"class_name": "AbsMaxQuantizer"}
    if not is_row(quantizer) or quantizer.get("class_name") != "AbsMaxQuantizer":
        raise node.unsupported("multiplies floats by int8 weights", "quantize activations, too: model.quantize('int8')")
    config = quantizer.get("config", {})
    if config.get("value_range", [-127, 127]) != [-127, 127]:
        raise node.unsupported(f"has codes in {config['value_range']}", "-127 to 127 are supported")
    return float(config.get("epsilon", 1e-7))


def quantized_rows(importer: Importer, x: SSAValue, epsilon: float) -> tuple[SSAValue, Scalar]:
    """Codes of each row of a matrix, and their scales [rows, 1]."""
    data = Scalar(importer, x)
    most = importer.call(relay.MaxOp, data.of(relay.AbsOp).value, axis=[1], keepdims=True)
    base = Scalar(importer, most) + epsilon
    scale = base.number(LEVELS) / base
    steps = importer.clip(nearest_even(importer, (data * scale).value), -LEVELS, LEVELS)
    return importer.cast(steps, i8), scale


def product(
    importer: Importer, node: Layer, x: SSAValue, kernel: np.ndarray[tuple[int, ...], np.dtype[np.generic]],
    scale: np.ndarray[tuple[int, ...], np.dtype[np.generic]] | None,
) -> SSAValue:  # fmt: skip
    """A matrix times the matrix [inner, columns] of a layer; with the scales of its columns, a product of codes."""
    value = importer.weight(node, "kernel", kernel)
    if scale is None:
        return importer.call(relay.MatmulOp, x, value, out_dtype=f32)
    codes, own = quantized_rows(importer, x, _epsilon(node))
    sums = importer.call(relay.MatmulOp, codes, value, out_dtype=i32)
    factor = Scalar(importer, importer.weight(node, "kernel_scale", scale.reshape(1, -1)))
    return (Scalar(importer, importer.cast(sums, f32)) / (own * factor)).value


def _weights(node: Layer, biased: bool) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    return node.weights("kernel", *["bias"] * biased, *["kernel_scale"] * node.quantized)


@layer("Dense")
def dense(importer: Importer, node: Layer) -> SSAValue:
    weights = _weights(node, node.flag("use_bias", True))
    x = importer.real(node.value())
    kernel = weights["kernel"]
    found = product(importer, node, importer.rows(x), kernel, weights.get("kernel_scale"))
    bias = weights.get("bias")
    found = importer.add(found, None if bias is None else importer.weight(node, "bias", bias))
    found = importer.reshape(found, [*importer.shape(x)[:-1], kernel.shape[1]])
    return activated(importer, node, found)


@layer("EinsumDense")
def einsum_dense(importer: Importer, node: Layer) -> SSAValue:
    """As a product of matrices where the axes that are summed are the last of the input and the first of the kernel."""
    equation = node.word("equation").replace(" ", "")
    given, _, wanted = equation.partition("->")
    left, _, right = given.partition(",")
    axes = node.config.get("bias_axes")
    weights = _weights(node, axes is not None)
    x, kernel, bias = importer.real(node.value()), weights["kernel"], weights.get("bias")
    left, wanted = (_spelled(importer, node, each, left) for each in (left, wanted))
    shared = "".join(each for each in left if each in right and each not in wanted)
    columns = "".join(each for each in right if each not in shared)
    free = left[: len(left) - len(shared)]
    scale = weights.get("kernel_scale")
    if left == free + shared and sorted(right) == sorted(shared + columns) and wanted == free + columns and shared:
        order = [right.index(each) for each in shared + columns]
        arranged = kernel.transpose(order)
        tail = arranged.shape[len(shared) :]
        matrix = np.ascontiguousarray(arranged.reshape(-1, int(np.prod(tail))))
        if scale is not None:
            scale = scale.reshape(-1)
        found = product(importer, node, importer.rows(x, len(shared)), matrix, scale)
        found = importer.reshape(found, [*importer.shape(x)[: len(free)], *tail])
    elif scale is not None:
        raise node.unsupported(f"multiplies codes by the equation {equation[:80]!r}", "sum over the last axes")
    else:
        node.static(x)
        value = importer.weight(node, "kernel", kernel)
        found = einsum(importer, f"{left},{right}->{wanted}", [x, value])
    if bias is not None:
        found = importer.add(found, importer.weight(node, "bias", bias))
    return activated(importer, node, found)


def _spelled(importer: Importer, node: Layer, term: str, left: str) -> str:
    """A term with a letter for each axis that the dots stand for."""
    hidden = importer.rank(node.value()) - len(left.replace("...", ""))
    free = [each for each in "ABCDEFGHIJ" if each not in left]
    return term.replace("...", "".join(free[: hidden if "..." in left else 0]))


@layer("Embedding")
def embedding(importer: Importer, node: Layer) -> SSAValue:
    """Rows by their numbers; codes of int8 are divided by the scale of their row."""
    weights = node.weights("embeddings", *["embeddings_scale"] * node.quantized)
    x = node.value()
    if importer.dtype(x).name not in ("int32", "int64"):
        x = importer.cast(x, i32)
    table = importer.weight(node, "embeddings", weights["embeddings"])
    found = importer.call(relay.TakeOp, table, x, axis=0, mode="clip")
    if not node.quantized:
        return found
    scale = importer.weight(node, "embeddings_scale", weights["embeddings_scale"].reshape(-1, 1))
    own = importer.call(relay.TakeOp, scale, x, axis=0, mode="clip")
    return importer.call(relay.DivideOp, importer.cast(found, f32), own)
