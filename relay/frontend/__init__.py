"""Frontends: a model file in, an `IRModule` out. `from_tflite` is the one that is built."""

from __future__ import annotations

from typing import NoReturn

from relay.errors import Unsupported
from relay.frontend.tflite.importer import from_tflite, supported_operators

__all__ = ["from_keras", "from_onnx", "from_pytorch", "from_tflite", "supported_operators"]


def from_onnx(model: object = None, *_: object, **__: object) -> NoReturn:
    """Always raises Unsupported."""
    raise Unsupported("from_onnx", "ONNX models cannot be imported", "convert the model to .tflite and use from_tflite")


def from_keras(model: object = None, *_: object, **__: object) -> NoReturn:
    """Always raises Unsupported."""
    hint = "convert it with tf.lite.TFLiteConverter.from_keras_model and use from_tflite"
    raise Unsupported("from_keras", "Keras models cannot be imported", hint)


def from_pytorch(model: object = None, *_: object, **__: object) -> NoReturn:
    """Always raises Unsupported."""
    hint = "convert it with litert-torch (ai-edge-torch) and use from_tflite"
    raise Unsupported("from_pytorch", "PyTorch models cannot be imported", hint)
