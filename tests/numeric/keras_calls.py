"""Small models, one or a few layers each, for `keras_recording.py`: a row says how a model is built of its inputs."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np


class Row(NamedTuple):
    """A model: the shapes of its inputs without the batch, and its outputs of them."""

    build: Callable[..., Any]
    shapes: tuple[tuple[int | None, ...], ...]
    dtype: str = "float32"
    quantized: bool = False


def rows() -> dict[str, Row]:
    """By name. Needs Keras."""
    keras: Any = import_module("keras")
    layers, ops = keras.layers, keras.ops
    found: dict[str, Row] = {}

    def add(name: str, build: Callable[[Any], Any], *shapes: tuple[int | None, ...], **more: Any) -> None:
        found[name] = Row(build, shapes, **more)

    def pair(name: str, build: Callable[[Any, Any], Any], *shapes: tuple[int | None, ...]) -> None:
        found[name] = Row(build, shapes)

    def triple(name: str, build: Callable[[Any, Any, Any], Any], *shapes: tuple[int | None, ...]) -> None:
        found[name] = Row(build, shapes)

    image, line, block = (7, 6, 4), (9, 4), (5, 4, 6, 2)
    for n, shape in ((1, line), (2, image), (3, block)):
        conv, pool = getattr(layers, f"Conv{n}D"), ("Max", "Average")
        add(f"conv{n}d", conv(3, 3), shape)
        add(f"conv{n}d_same", conv(3, 3, strides=2, padding="same", activation="relu"), shape)
        add(f"conv{n}d_dilated", conv(2, 2, dilation_rate=2, padding="same", use_bias=False), shape)
        add(f"conv{n}d_groups", conv(4, 2, groups=2, activation="swish"), shape)
        first = (shape[-1], *shape[:-1])
        add(f"conv{n}d_first", conv(3, 2, padding="same", data_format="channels_first"), first)
        transposed = getattr(layers, f"Conv{n}DTranspose")
        add(f"conv{n}d_transpose", transposed(3, 3, strides=2), shape)
        add(f"conv{n}d_transpose_same", transposed(3, 3, strides=2, padding="same", activation="elu"), shape)
        add(f"conv{n}d_transpose_wide", transposed(2, 2, strides=3, padding="same"), shape)
        add(f"conv{n}d_transpose_narrow", transposed(2, 2, strides=3), shape)
        add(f"conv{n}d_transpose_extra", transposed(2, 4, strides=3, padding="same", output_padding=1), shape)
        add(f"conv{n}d_transpose_first", transposed(2, 3, data_format="channels_first"), first)
        for kind in pool:
            each = getattr(layers, f"{kind}Pooling{n}D")
            add(f"{kind}_pool{n}d".lower(), each(2), shape)
            add(f"{kind}_pool{n}d_same".lower(), each(3, strides=2, padding="same"), shape)
            add(f"{kind}_pool{n}d_first".lower(), each(2, strides=1, data_format="channels_first"), first)
            each = getattr(layers, f"Global{kind}Pooling{n}D")
            add(f"global_{kind}{n}d".lower(), each(), shape)
            add(f"global_{kind}{n}d_kept".lower(), each(keepdims=True, data_format="channels_first"), first)
            add(f"adaptive_{kind}{n}d".lower(), getattr(layers, f"Adaptive{kind}Pooling{n}D")(2), shape)
        add(f"zero_padding{n}d", getattr(layers, f"ZeroPadding{n}D")(2), shape)
        add(f"cropping{n}d", getattr(layers, f"Cropping{n}D")(1), shape)
        add(f"up_sampling{n}d", getattr(layers, f"UpSampling{n}D")(2), shape)
    add("conv1d_causal", layers.Conv1D(3, 3, padding="causal", dilation_rate=2), line)
    for n, shape in ((1, line), (2, image)):
        depthwise, separable = (getattr(layers, f"{kind}Conv{n}D") for kind in ("Depthwise", "Separable"))
        first = (shape[-1], *shape[:-1])
        add(f"depthwise{n}d", depthwise(3, padding="same", depth_multiplier=2, activation="relu6"), shape)
        add(f"depthwise{n}d_stride", depthwise(3, strides=2, padding="same", use_bias=False), shape)
        add(f"depthwise{n}d_first", depthwise(2, data_format="channels_first"), first)
        add(f"separable{n}d", separable(5, 3, padding="same", depth_multiplier=2), shape)
        add(f"separable{n}d_first", separable(3, 2, data_format="channels_first"), first)
    add("zero_padding2d_sides", layers.ZeroPadding2D(((1, 0), (2, 3))), image)
    add("cropping2d_sides", layers.Cropping2D(((1, 0), (2, 3)), data_format="channels_first"), (2, 6, 7))
    for mode in ("bilinear", "bicubic"):
        add(f"up_sampling2d_{mode}", layers.UpSampling2D(2, interpolation=mode), image)
    for mode in ("nearest", "bilinear", "bicubic"):
        add(f"resizing_{mode}", layers.Resizing(9, 4, interpolation=mode), image)
        add(
            f"resizing_{mode}_first",
            layers.Resizing(5, 11, interpolation=mode, data_format="channels_first"),
            (3, 7, 6),
        )
    add("center_crop", layers.CenterCrop(4, 3), image)
    add("rescaling", layers.Rescaling(1 / 127.5, offset=-1), image)
    add("rescaling_channels", layers.Rescaling([0.5, 2.0, 1.0, 3.0], offset=[1, 2, 3, 4]), image)
    add("normalization", layers.Normalization(mean=[1.0, 2, 3, 4], variance=[1.0, 2, 3, 4]), image)
    add("normalization_invert", layers.Normalization(axis=None, mean=2.0, variance=4.0, invert=True), image)

    names = ("celu elu exponential gelu glu hard_shrink hard_sigmoid hard_silu hard_tanh leaky_relu linear log_sigmoid "
             "log_softmax mish relu relu6 selu sigmoid silu soft_shrink softmax softplus softsign sparse_plus "
             "sparse_sigmoid squareplus tanh tanh_shrink threshold")  # fmt: skip
    for name in names.split():
        if name != "threshold":
            add(f"activation_{name}", layers.Activation(name), (3, 8))
        if name not in ("exponential", "linear", "mish"):
            function = getattr(ops, name)
            more: dict[str, Any] = {"threshold": 0.5, "default_value": 0.25} if name == "threshold" else {}
            add(f"ops_{name}", lambda x, function=function, more=more: function(x, **more), (3, 8))
    add("ops_gelu_exact", lambda x: ops.gelu(x, approximate=False), (9,))
    add("ops_softmax_axes", lambda x: ops.softmax(x, axis=(1, 2)), (3, 8))
    add("relu", layers.ReLU(), image)
    add("relu_most", layers.ReLU(max_value=1.5), image)
    add("relu_six", layers.ReLU(max_value=6, negative_slope=0.1), image)
    add("relu_slope", layers.ReLU(negative_slope=0.2), image)
    add("relu_threshold", layers.ReLU(max_value=2.0, negative_slope=0.1, threshold=0.3), image)
    add("leaky_relu", layers.LeakyReLU(negative_slope=0.05), image)
    add("p_relu", layers.PReLU(), image)
    add("p_relu_shared", layers.PReLU(shared_axes=[1, 2]), image)
    add("elu", layers.ELU(alpha=0.7), image)
    add("softmax", layers.Softmax(axis=1), image)
    add("softmax_axes", layers.Softmax(axis=(1, 3)), image)

    add("batch_normalization", layers.BatchNormalization(), image)
    add("batch_normalization_plain", layers.BatchNormalization(axis=1, center=False, scale=False), image)
    add("layer_normalization", layers.LayerNormalization(), line)
    add("layer_normalization_axes", layers.LayerNormalization(axis=[1, 2]), image)
    add("layer_normalization_plain", layers.LayerNormalization(center=False, scale=False, axis=-1), line)
    add("group_normalization", layers.GroupNormalization(groups=2), image)
    add("group_normalization_each", layers.GroupNormalization(groups=-1, axis=1), image)
    add("rms_normalization", layers.RMSNormalization(), line)
    scale: Any = import_module("keras.src.applications.convnext").LayerScale
    add("layer_scale", scale(0.5, 4), line)
    add("unit_normalization", layers.UnitNormalization(), line)

    add("dense", layers.Dense(5, activation="tanh"), (7,))
    add("dense_rank3", layers.Dense(5, use_bias=False), line)
    add("einsum_dense", layers.EinsumDense("abc,cd->abd", output_shape=(None, 5), bias_axes="d"), line)
    add("einsum_dense_heads", layers.EinsumDense("abc,cde->abde", output_shape=(None, 2, 3), bias_axes="de"), line)
    add("einsum_dense_sums", layers.EinsumDense("abcd,cde->abe", output_shape=(None, 5)), image)
    add("einsum_dense_dots", layers.EinsumDense("...x,xy->...y", output_shape=5, bias_axes="y"), image)
    add("einsum_dense_middle", layers.EinsumDense("abc,bd->adc", output_shape=(5, 4)), line)
    add("embedding", layers.Embedding(6, 3), (5,), dtype="int32")
    add("embedding_floats", layers.Embedding(6, 3), (5,), dtype="uint8")
    for name in ("Dropout", "SpatialDropout1D", "GaussianNoise", "GaussianDropout", "AlphaDropout"):
        add(name.lower(), getattr(layers, name)(0.3), line)
    add("identity", lambda x: layers.Identity()(layers.ActivityRegularization(0.1)(x)), line)

    add("flatten", layers.Flatten(), image)
    add("flatten_first", layers.Flatten(data_format="channels_first"), image)
    add("flatten_row", lambda x: layers.Flatten()(x[:, 0]), (3,))
    add("reshape", layers.Reshape((3, -1, 2)), image)
    add("permute", layers.Permute((3, 1, 2)), image)
    add("repeat_vector", layers.RepeatVector(3), (4,))
    for name in ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum"):
        pair(f"merge_{name}".lower(), lambda x, y, name=name: getattr(layers, name)()([x, y]), line, line)
    triple("merge_three", lambda x, y, z: layers.Average()([x, y, z]), line, line, (1, 4))
    pair("concatenate", lambda x, y: layers.Concatenate(axis=1)([x, y]), line, (3, 4))
    pair("dot", lambda x, y: layers.Dot(axes=(1, 2))([x, y]), (4, 3), (5, 4))
    pair("dot_rows", lambda x, y: layers.Dot(axes=1, normalize=True)([x, y]), (4,), (4,))

    for kind in ("LSTM", "GRU", "SimpleRNN"):
        each = getattr(layers, kind)
        add(kind.lower(), each(3), line)
        add(f"{kind.lower()}_sequences", each(3, return_sequences=True, go_backwards=True, use_bias=False), line)
        add(f"{kind.lower()}_states", each(3, return_sequences=True, return_state=True), line)
        add(f"{kind.lower()}_both", layers.Bidirectional(each(3)), line)
    add("gru_before", layers.GRU(3, reset_after=False, activation="relu"), line)
    add("lstm_sigmoids", layers.LSTM(3, recurrent_activation="hard_sigmoid", unit_forget_bias=False), line)
    for mode in ("sum", "ave", "mul", None):
        wrapper = layers.Bidirectional(layers.LSTM(2, return_sequences=True), merge_mode=mode)
        add(f"bidirectional_{mode}", wrapper, line)
    add("bidirectional_states", layers.Bidirectional(layers.GRU(2, return_state=True)), line)
    pair("initial_state", lambda x, h: layers.GRU(3)(x, initial_state=h), line, (3,))
    triple("initial_states", lambda x, h, c: layers.LSTM(3)(x, initial_state=[h, c]), line, (3,), (3,))
    add("time_distributed", layers.TimeDistributed(layers.Dense(3, activation="relu")), line)
    add("time_distributed_conv", layers.TimeDistributed(layers.Conv2D(2, 2)), (3, 5, 4, 2))
    add("spectral", layers.SpectralNormalization(layers.Conv2D(2, 2, activation="relu")), (5, 4, 2))

    heads = layers.MultiHeadAttention
    add("attention_heads", lambda x: heads(2, 3)(x, x), line)
    pair("attention_cross", lambda x, y: heads(2, 3, output_shape=5, use_bias=False, dropout=0.1)(x, y), line, (5, 3))
    add("attention_causal", lambda x: heads(2, 4)(x, x, use_causal_mask=True), line)
    pair("attention_mask", lambda x, m: heads(2, 4)(x, x, attention_mask=m > 0), line, (9, 9))
    add("attention_scores", lambda x: heads(2, 4)(x, x, return_attention_scores=True), line)
    add("attention_groups", lambda x: layers.GroupQueryAttention(3, 4, 2)(x, x, use_causal_mask=True), line)
    pair("attention", lambda x, y: layers.Attention(use_scale=True)([x, y]), line, (5, 4))
    pair("attention_concat", lambda x, y: layers.Attention(score_mode="concat")([x, y]), line, (5, 4))
    pair("attention_additive", lambda x, y: layers.AdditiveAttention()([x, y], use_causal_mask=True), line, line)

    unary = ("abs arccos arcsin arctan arcsinh ceil cos cosh erf exp expm1 exp2 floor isfinite isnan log1p negative "
             "reciprocal round sign sin sinh square tan trunc")  # fmt: skip
    for name in unary.split():
        function = getattr(ops, name)
        clipped = name in ("arccos", "arcsin", "log1p")
        add(f"ops_{name}", lambda x, f=function, c=clipped: f(ops.clip(x, -0.9, 0.9) if c else x), (3, 4))
    for name in ("log", "log2", "log10", "sqrt", "rsqrt"):
        function = getattr(ops, name)
        add(f"ops_{name}", lambda x, f=function: f(ops.abs(x) + 0.25), (3, 4))
    binary = ("add subtract multiply divide maximum minimum equal not_equal greater less greater_equal less_equal mod "
              "floor_divide true_divide")  # fmt: skip
    for name in binary.split():
        function = getattr(ops, name)
        pair(f"ops_{name}", lambda x, y, f=function: f(x, y), (3, 4), (1, 4))
        add(f"ops_{name}_int", lambda x, f=function: f(x, 3), (3, 4), dtype="int32")
    add("ops_power", lambda x: [ops.power(ops.abs(x), 1.5), x**2, ops.sqrt(ops.abs(x))], (3, 4))
    add("ops_numbers", lambda x: 2.0 - x / 3 + 1 / (x * x + 1), (3, 4))
    add("ops_constant", lambda x: x * ops.convert_to_tensor([1.0, 2.0, 3.0, 4.0]), (3, 4))
    pair("ops_logic", lambda x, y: [f(x > 0, y > 0) for f in (ops.logical_and, ops.logical_or, ops.logical_xor)],
        (3, 4), (3, 4))  # fmt: skip
    pair("ops_where", lambda x, y: ops.where(ops.logical_not(x > 0), x, y), (3, 4), (3, 4))
    add("ops_where_number", lambda x: ops.where(x > 0, x, 0.5), (3, 4))
    add("ops_clip", lambda x: [ops.clip(x, -1, 0.5), ops.cast(x * 3, "int32")], (3, 4))
    add("ops_like", lambda x: [ops.zeros_like(x), ops.ones_like(x) + x, ops.full_like(x, 2.5)], (3, 4))
    add("ops_stop_gradient", lambda x: ops.stop_gradient(x) + 1, (3, 4))
    pair("ops_matmul", lambda x, y: ops.matmul(x, y), (3, 4), (4, 5))
    pair("ops_einsum", lambda x, y: ops.einsum("bij,bkj->bik", x, y), (3, 4), (5, 4))
    for name in ("sum", "prod", "mean", "max", "min", "var", "std", "logsumexp", "amax", "amin"):
        function = getattr(ops, name)
        add(f"ops_{name}", lambda x, f=function: [f(x, axis=1), f(x, axis=(1, 2), keepdims=True)], (3, 4))
    add("ops_sum_int", lambda x: [ops.sum(x, axis=1), ops.mean(x, axis=-1), ops.max(x)], (3, 4), dtype="int32")
    add("ops_any", lambda x: [ops.any(x > 1, axis=1), ops.all(x > -2, axis=1), ops.sum(x > 0, axis=1)], (3, 4))
    add("ops_argmax", lambda x: [ops.argmax(x, axis=1), ops.argmin(x, axis=-1, keepdims=True), ops.argmax(x)], (3, 4))
    add("ops_norm", lambda x: [ops.norm(x, axis=(1,)), ops.normalize(x, axis=1)], (3, 4))
    add("ops_rms", lambda x: ops.rms_normalization(x, epsilon=1e-6), (3, 4))
    add("ops_cumsum", lambda x: [ops.cumsum(x, axis=1), ops.cumprod(x, axis=2)], (3, 4))
    add("ops_top_k", lambda x: ops.top_k(x, 2), (3, 4))
    add("ops_sort", lambda x: [ops.sort(x, axis=1), ops.argsort(x, axis=-1)], (3, 4))
    add("ops_reshape", lambda x: [ops.reshape(x, (-1, 2, 6)), ops.reshape(x, (-1,)), ops.ravel(x)], (3, 4))
    add("ops_transpose", lambda x: [ops.transpose(x, (0, 2, 1)), ops.transpose(x), ops.swapaxes(x, 1, 2)], (3, 4))
    add("ops_moveaxis", lambda x: [ops.moveaxis(x, 1, -1), ops.moveaxis(x, (1, 2), (3, 1))], (3, 4, 5))
    pair("ops_concatenate", lambda x, y: [ops.concatenate([x, y], axis=1), ops.stack([x, x], axis=-1)], (3, 4), (2, 4))
    add("ops_split", lambda x: [*ops.split(x, 2, axis=2), *ops.split(x, [1], axis=1), *ops.unstack(x, axis=1)], (3, 4))
    add("ops_expand", lambda x: [ops.expand_dims(x, 1), ops.squeeze(x[:, :1], axis=1)], (3, 4))
    add("ops_tile", lambda x: [ops.tile(x, (1, 2, 3)), ops.repeat(x, 2, axis=1)], (3, 4))
    add("ops_broadcast", lambda x: ops.broadcast_to(x[:2, :1], (2, 3, 4)), (3, 4))
    add("ops_flip", lambda x: [ops.flip(x, axis=1), x[:, ::-1, 1:3], x[..., -1], x[:, None, 0]], (3, 4))
    add("ops_pad", lambda x: [ops.pad(x, ((0, 0), (1, 2), (0, 1)), constant_values=3), ops.pad(x, 1, mode="reflect")],
        (3, 4))  # fmt: skip
    add("ops_take", lambda x: [ops.take(x, [2, 0, -1], axis=1), ops.take(x, 1, axis=2)], (3, 4))
    add("ops_one_hot", lambda x: ops.one_hot(x, 6), (4,), dtype="int32")

    def everything(x: Any) -> Any:
        like = [f(x, dtype=t) for f in (ops.ones_like, ops.zeros_like) for t in ("float32", "int32", "uint8", "bool")]
        sums = [ops.sum(x, axis=1), ops.prod(x, axis=1), ops.prod(x, dtype="float32"), ops.mean(x), ops.cumsum(x),
                ops.cumprod(x, axis=1), ops.cumsum(x, axis=-1, dtype="float32"), ops.square(x)]  # fmt: skip
        sums += [f(x) for f in (ops.floor, ops.ceil, ops.trunc, ops.exp, ops.relu)]
        numbers = [x + 2, x * 2.5, x / 3, x + True, x * np.array([1.0, 2.0, 3.0, 4.0]), ops.full_like(x, 1)]
        pairs = [f(x, x) for f in (ops.add, ops.multiply, ops.maximum, ops.mod)] + [ops.divide(x, ops.abs(x) + 1)]
        return like + sums + numbers + pairs + [ops.matmul(x, ops.transpose(x, (0, 2, 1))), ops.logical_and(x, True)]

    for name in ("bool", "uint8", "int8", "int16", "uint16", "int32"):
        add(f"types_{name}", everything, (3, 4), dtype=name)
    for name in ("int8", "int32"):
        add(f"types_round_{name}", lambda x: [ops.round(x), ops.sign(x), ops.abs(x), -x], (3, 4), dtype=name)
        add(f"types_dense_{name}", lambda x: layers.Dense(3)(layers.BatchNormalization()(x)), (4,), dtype=name)
    add("types_images", lambda x: layers.Conv2D(2, 2)(layers.Resizing(14, 12)(x)), image, dtype="uint8")
    add("types_nearest", layers.Resizing(5, 3, interpolation="nearest"), image, dtype="uint8")
    add("types_chain", lambda x: ops.expand_dims(ops.sum(x, axis=1), 1) + ops.mean(x, axis=2), (4, 4), dtype="uint8")
    add("batch_normalization_renorm", layers.BatchNormalization(renorm=True), image)
    add("time_distributed_model", lambda x: layers.TimeDistributed(keras.Sequential(
        [layers.Conv2D(3, 2), layers.ReLU(), layers.Flatten(), layers.Dense(4)]))(x), (3, 5, 4, 2))  # fmt: skip
    add("time_distributed_lstm", layers.TimeDistributed(layers.LSTM(3)), image)

    def shared(x: Any, y: Any) -> Any:
        dense = layers.Dense(4, activation="relu")
        inner = keras.Sequential([layers.Dense(4), layers.Dropout(0.1), dense])
        given = keras.Input((4,))
        nested = keras.Model(given, [inner(given), dense(given) + given], name="nested")
        first, second = nested(x)
        return [inner(first) + dense(y), nested(second)[1]]

    pair("shared", shared, (4,), (4,))
    add("named", lambda x: {"b": layers.Dense(2)(x), "a": layers.Dense(3)(x)}, (4,))
    add("open_steps", lambda x: layers.GlobalAveragePooling1D()(layers.Conv1D(3, 2)(x)), (None, 4))

    def net(x: Any) -> Any:
        for filters in (8, 16):
            x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
            x = layers.ReLU()(layers.BatchNormalization()(x))
        return layers.Dense(5)(layers.GlobalAveragePooling2D()(layers.MaxPooling2D()(x)))

    add("net", net, (8, 8, 3))
    add("int8_dense", layers.Dense(5, activation="relu"), (9, 16), quantized=True)
    add("int8_einsum", layers.EinsumDense("abc,cde->abde", output_shape=(None, 2, 3), bias_axes="de"), (5, 16),
        quantized=True)  # fmt: skip
    add("int8_embedding", layers.Embedding(6, 8), (5,), dtype="int32", quantized=True)
    add("int8_attention", lambda x: heads(2, 8)(x, x), (5, 16), quantized=True)
    add("int8_net", lambda x: layers.Dense(4)(layers.LayerNormalization()(layers.Dense(8, activation="gelu")(x))), (8,),
        quantized=True)  # fmt: skip
    return found
