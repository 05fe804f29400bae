"""Small models of Keras, and what `from_keras` says of each: a row per message."""

from __future__ import annotations

import json
from typing import Any

import pytest

from relay.errors import RelayError
from relay.frontend import from_keras
from relay.frontend.importing import conversion as importing
from relay.frontend.importing import hdf5
from relay.frontend.keras import conversion
from tests.numeric.keras_models import (
    CASES,
    WEIGHTS,
    Json,
    archive,
    functional,
    inputs,
    one,
    parts,
    row,
    tensor,
    zipped,
)

IMAGE, LINE, OPEN = (2, 7, 6, 4), (2, 9, 4), (2, None, 4)
SLICE = {"class_name": "__slice__", "config": {"start": None, "stop": 1, "step": None}}


def policy(**config: Any) -> dict[str, Any]:
    return {"class_name": "DTypePolicy", "config": config}


def wrapped(kind: str, **config: Any) -> dict[str, Any]:
    return {"module": "keras.layers", "class_name": kind, "config": {"name": "inner", **config}}


def weights(start: bytes, at: int, new: bytes) -> bytes:
    """A model whose file of weights has other bytes at the first place of these, or at that address."""
    entries = parts(CASES["dense.keras"])
    data = bytearray(entries[WEIGHTS])
    place = data.index(start) + at if start else at
    data[place : place + len(new)] = new
    return zipped({**entries, WEIGHTS: bytes(data)})


def flipped(name: str) -> bytes:
    """A recorded model with one bit of its weights changed."""
    data = bytearray(CASES[f"{name}.keras"])
    data[data.index(parts(bytes(data))[WEIGHTS][-64:])] ^= 1
    return bytes(data)


def edited(name: str, **changes: Any) -> bytes:
    """A recorded model whose last layer has another configuration."""
    entries = parts(CASES[f"{name}.keras"])
    model = json.loads(entries["config.json"])
    model["config"]["layers"][0]["config"]["batch_shape"][0] = 2
    model["config"]["layers"][-1]["config"].update(changes)
    return zipped({**entries, "config.json": json.dumps(model).encode()})


def graph(kind: str = "Identity", nodes: Any = None, output: Any = ("y", 0, 0), **more: Any) -> bytes:
    node: Json = {"args": [tensor("x0", shape=LINE)], "kwargs": {}}
    layer = row(kind, {"name": "y", **more}, [node] if nodes is None else nodes)
    return archive(functional([*inputs(LINE), layer], [["x0", 0, 0]], [list(output)]))


def source(**changes: Any) -> bytes:
    """A model whose input layer has another configuration."""
    first = inputs(LINE)[0]
    first["config"].update(changes)
    layer = row("Identity", {"name": "y"}, [{"args": [tensor("x0", shape=LINE)], "kwargs": {}}])
    return archive(functional([first, layer], [["x0", 0, 0]], [["y", 0, 0]]))


def nested(count: int) -> bytes:
    """A model that is called with one tensor, and takes so many."""
    names = [[f"x{i}", 0, 0] for i in range(count)]
    inner = functional(inputs(*[LINE] * count), names, [["x0", 0, 0]], "inner")
    inner["inbound_nodes"] = [{"args": [tensor("x0", shape=LINE)], "kwargs": {}}]
    return archive(functional([*inputs(LINE), inner], [["x0", 0, 0]], [["inner", 1, 0]]))


def sequential(layers: list[dict[str, Any]], **config: Any) -> bytes:
    return archive(row("Sequential", {"name": "m", "layers": layers, **config}, module="keras"))


ONLY: Json = {"args": [[tensor("x0", shape=LINE)] * 2], "kwargs": {}}
ODD_SCORE = graph("Attention", [ONLY], score_mode="odd")
CAUSAL_CALL: Json = {"args": [[tensor("x0", shape=OPEN)] * 2], "kwargs": {"use_causal_mask": True}}
STEPS = row(
    "Attention", {"name": "y"}, [{"args": [[tensor("x0", shape=OPEN)] * 2], "kwargs": {"use_causal_mask": True}}]
)
CAUSAL = archive(functional([*inputs(OPEN), STEPS], [["x0", 0, 0]], [["y", 0, 0]]))
LAYOUT, FILL = b"\x08\x00\x18\x00\x00\x00\x00\x00\x03\x01", b"\x05\x00\x08\x00\x01"
FILES = parts(CASES["dense.keras"])
MODELS: dict[str, bytes] = {
    "is no zip archive": b"PK",
    "is cut off or damaged: File is not a zip file; copy or save": CASES["dense.keras"][:3000],
    "has no entry config.json": zipped({}),
    "has no entry model.weights.h5": zipped({"config.json": b"{}"}),
    "its weights are in model.weights.json": zipped({"config.json": b"{}", "model.weights.json": b""}),
    "was written by Keras 2.12": zipped({**FILES, "metadata.json": b'{"keras_version": "2.12"}'}),
    "config.json is no JSON": zipped({**FILES, "config.json": b"{"}),
    "config.json is no object": zipped({**FILES, "config.json": b"[]"}),
    "is no HDF5 file": zipped({**FILES, WEIGHTS: b"x" * 200}),
    "a superblock of version 2": weights(b"", 8, b"\x02"),
    "has offsets of 4 and lengths of 8 bytes": weights(b"", 13, b"\x04"),
    "model.weights.h5: address 24 is behind the end": zipped({**FILES, WEIGHTS: FILES[WEIGHTS][:20]}),
    "does not begin at its base address": weights(b"", 24, b"\x08"),
    "has an object header of version 9": weights(b"", 96, b"\x09"),
    "address 18446744073709551615 is behind the end": weights(b"", 64, b"\xff" * 8),
    "there is no heap of names": weights(b"HEAP", 0, b"X"),
    "is of kind 1 and level 0": weights(b"TREE", 4, b"\x01"),
    "there is no node of a tree": weights(b"TREE", 0, b"X"),
    "has 0 variables, not 2 (kernel, bias)": one("Dense", LINE),
    "is a model of the class 'Model', whose call": archive(row("Model", {"name": "m"}, module="mine")),
    "is not built: its shapes are not known; call": sequential([row("Flatten", {"name": "f"})]),
    "has the element type string": source(dtype="string"),
    "is sparse, ragged or optional": source(sparse=True),
    "has the shape [0]": source(batch_shape=[0]),
    "has no outputs": archive(functional(inputs(LINE), [["x0", 0, 0]], [])),
    "the model cannot be read: KeyError: 'layers'": archive(row("Functional", {"name": "m"}, module="keras")),
    "the model cannot be read: ValueError: tensor": graph(output=("y", "0", 0)),
    "the model cannot be read: ValueError: tensors 5": archive(functional(inputs(LINE), 5, [])),
    "the model cannot be read: KeyError: ('y', -1)": graph(output=("y", -1, 0)),
    "the model cannot be read: CycleError": graph(nodes=[{"args": [tensor("y")], "kwargs": {}}]),
    "calls a model of 2 inputs with 1": nested(2),
    "gives tensor<2x9x4xf32>, which is [3] float32": graph(nodes=[{"args": [tensor("x0", shape=[3])], "kwargs": {}}]),
    "is of a class of mine, whose call is Python code": archive(
        functional(
            [
                *inputs(LINE),
                row("Mine", {"name": "y"}, [{"args": [tensor("x0", shape=LINE)], "kwargs": {}}], module="mine"),
            ],
            [["x0", 0, 0]],
            [["y", 0, 0]],
        )  # fmt: skip
    ),
    "Lambda 'y': runs Python code of its own": one("Lambda", LINE),
    "layer 1 Odd 'y': the class is not supported": one("Odd", LINE),
    "is called in training mode": one("Dropout", LINE, kwargs={"training": True}),
    "leaves out steps by a mask": one("LSTM", LINE, LINE, kwargs={"mask": tensor("x1", shape=LINE)}),
    "cannot be read: ValueError": one("Rescaling", LINE, scale=[[1], [1, 2]], offset=0),
    "a result would have the shape": one("UpSampling1D", LINE, size=1 << 50),
    "is quantized as float8": graph("Dense", dtype=policy(mode="float8")),
    "computes in mixed_float16; build the model again": graph("Dense", dtype=policy(name="mixed_float16")),
    "multiplies floats by int8 weights": edited("int8_dense", quantization_config={"config": {}}),
    "has codes in [-8, 7]": edited(
        "int8_dense",
        quantization_config={
            "config": {"activation_quantizer": {"class_name": "AbsMaxQuantizer", "config": {"value_range": [-8, 7]}}}
        },
    ),  # fmt: skip
    "multiplies codes by the equation": edited("int8_einsum", equation="abc,cde->adbe"),
    "is given 2 states, and has 1": one(
        "GRU", LINE, weights="gru", units=3, kwargs={"initial_state": [tensor("x0", shape=LINE)] * 2}
    ),
    "takes tensor<2x?x5xf32>, of unknown size": one("LSTM", (2, None, 5)),
    "has the layer 'Odd'; the class is not supported": one("TimeDistributed", LINE, layer=wrapped("Odd")),
    "wraps 'Flatten'; LSTM, GRU": one("Bidirectional", LINE, layer=wrapped("Flatten")),
    "merge_mode is 'odd'": edited("lstm_both", merge_mode="odd"),
    "has 9 channels, an odd number": one("Glu", LINE, ops=True, axis=1),
    "has the activation 'odd'": one("Activation", LINE, activation="odd"),
    "which has 0 spatial axes": one("ZeroPadding1D", (2, 3), padding=1),
    "padding is 'odd'; it may be valid, same, causal": one("MaxPooling1D", LINE, pool_size=2, padding="odd"),
    "padding is 'causal'; it may be valid, same": edited("conv1d_transpose", padding="causal"),
    "pads an axis of unknown size": one("MaxPooling1D", OPEN, pool_size=2, strides=2, padding="same"),
    "interpolation is 'odd'; it may be nearest, bilinear, bicubic": one(
        "Resizing", IMAGE, height=2, width=2, interpolation="odd"
    ),
    "takes tensor<2x?x6x4xf32>, of unknown size": one(
        "Resizing", (2, None, 6, 4), height=2, width=2, interpolation="nearest"
    ),
    "to a height of 9": one("CenterCrop", IMAGE, height=9, width=2),
    "takes tensor<2x?x?xf32>, of unknown size": CAUSAL,
    "attends along other axes": one("MultiHeadAttention", IMAGE, IMAGE),
    "is given value_mask": one("MultiHeadAttention", LINE, LINE, kwargs={"value_mask": True}),
    "takes 1 tensors, not 2 or 3": one("Attention", LINE),
    "score_mode is 'odd'": ODD_SCORE,
    "multiplies tensor<2x9x4xf32> by": one("Dot", LINE, LINE, ops=True),
    "subtracts 1 tensors": one("Subtract", LINE),
    "has the axes [1, 2, 0]": one("Dot", LINE, LINE, axes=[1, 2, 0]),
    "has the operand 'odd'": one("Take", LINE, ops=True, more=["odd"]),
    "has the operand 'text'": one("Add", LINE, ops=True, more=["text"]),
    "the shape [-1, -1]": one("Reshape", LINE, ops=True, newshape=[-1, -1]),
    "gives tensor<2x9x4xf32> the shape [5]": one("Reshape", LINE, ops=True, newshape=[5]),
    "cannot be read: ValueError: repeated axis in transpose": one("Permute", LINE, dims=[1, 1]),
    "padding is x": one("ZeroPadding2D", IMAGE, padding="x"),
    "padding is x, no integers": one("ZeroPadding1D", LINE, padding="x"),
    "padding is [-1, 2]": one("ZeroPadding1D", LINE, padding=[-1, 2]),
    "pad_width is [[1, 1], [1, 1]]": one("Pad", LINE, ops=True, pad_width=[[1, 1], [1, 1]]),
    "mode is 'odd'; it may be constant, reflect, symmetric, edge": one("Pad", LINE, ops=True, pad_width=1, mode="odd"),
    "pads by a tensor": one("Pad", LINE, ops=True, pad_width=1, more=[tensor("x0", shape=LINE)]),
    "crops 20 elements": one("Cropping1D", LINE, cropping=[10, 10]),
    "has no list of tensors": one("Stack", LINE, ops=True),
    "splits 9 elements into 2 parts": one("Split", LINE, ops=True, axis=1, indices_or_sections=2),
    "takes elements by an index that is a tensor": one("GetItem", LINE, ops=True, more=[[True]]),
    "has the index [0, 0, 0, 0]": one("GetItem", LINE, ops=True, more=[[0, 0, 0, 0]]),
    "has the index 9 along an axis of 2": one("GetItem", LINE, ops=True, more=[9]),
    "has the fill value odd": one("FullLike", LINE, ops=True, more=["odd"]),
    "scale is x, no number": one("Rescaling", LINE, scale="x", offset=0),
    "the argument inputs is no tensor": one("Flatten"),
    "has no inputs": one("Add"),
    "counts from the end of an axis of unknown size": one("Take", OPEN, ops=True, more=[[-1]], axis=1),
    "computes in 'complex64'": edited("ops_clip", dtype="complex64"),
    "is cut off: 400 of": zipped({**FILES, WEIGHTS: FILES[WEIGHTS][:400]}),
    "the entry 'model.weights.h5' is damaged: its CRC-32 is another; copy": flipped("dense"),
    "n is 'x', no integer": one("RepeatVector", (2, 3), n="x"),
    "dims is x, no integers": one("Permute", LINE, dims="x"),
    "size is [1, 2, 3] for 1 axes": one("UpSampling1D", LINE, size=[1, 2, 3]),
    "name one twice": one("Softmax", LINE, axis=[1, 1]),
    "data_format is 'odd'": one("Flatten", LINE, data_format="odd"),
    "takes tensor<2x3x?xf32>, of unknown size": one("Dense", (2, 3, None), weights="dense"),
    "takes tensor<2x?x4xf32>, of unknown size": one("Unstack", OPEN, ops=True),
    **{
        f"{name}: takes tensor<2x?x4xf32>, of unknown size; give": data
        for name, data in {
            "TimeDistributed 'y'": one("TimeDistributed", OPEN, layer=wrapped("Flatten")),
            "Reshape 'y'": one("Reshape", OPEN, target_shape=[-1, 2]),
            "LayerNormalization 'y'": one("LayerNormalization", OPEN, axis=1),
            "ops.Split 'y'": one("Split", OPEN, ops=True, axis=1, indices_or_sections=2),
            "ops.GetItem 'y'": one("GetItem", OPEN, ops=True, more=[[0, SLICE]]),
        }.items()
    },
    "has several outputs or steps, and is wrapped": one("TimeDistributed", LINE, layer=wrapped("ops.Unstack")),
    "dense/vars/0: is not in the file": weights(b"0" + bytes(7) + b"1", 0, b"x"),
    "is no dataset: it has no shape": weights(b"\x03\x00\x18\x00\x01", 0, b"\x0f"),
    "dense/vars/0: has [255, 5] elements of float32 in 140 bytes": weights(b"\x07" + bytes(7) + b"\x05", 0, b"\xff"),
    "is not stored in one piece": weights(LAYOUT, len(LAYOUT) - 1, b"\x02"),
    "is compressed": weights(FILL, 0, b"\x0b"),
    "has elements of HDF5's class 9": weights(b"\x11\x20\x1f\x00\x04", 0, b"\x19"),
    "stateful is True": one("LSTM", LINE, stateful=True),
}


class Model:
    """Stands for a live model of Keras."""

    name, built = "live", False

    def save(self, path: object) -> None:
        raise ValueError("no config")


Model.__module__ = "keras.src.models.model"


def told(words: str, model: object, **keywords: Any) -> None:
    with pytest.raises(RelayError) as found:
        from_keras(model, **keywords)
    assert words in str(found.value), (words, str(found.value))


def every() -> None:
    """All cases."""
    wrong: list[str] = []
    for words, data in MODELS.items():
        try:
            told(words, data)
        except (AssertionError, pytest.fail.Exception) as error:
            wrong.append(f"{words}: {error}")
    limits = {
        "models are more than 0 deep": (conversion, "DEEPEST"),
        "nested models come to more than 0 nodes": (importing, "MOST_NODES"),
        "has more than 0 nodes": (hdf5, "MOST_NODES"),
    }
    for words, (module, name) in limits.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, name, 0)
            told(words, CASES["dense.keras"])
    told("live: is not built: its shapes are not known", live := Model())
    live.built = True
    told("live: Keras cannot save it: no config; make it Functional", live)
    assert not wrong, "\n".join(wrong)
