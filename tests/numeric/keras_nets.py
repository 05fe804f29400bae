"""Networks of keras.applications with random weights against Keras: the table of docs/keras.md.

KERAS_BACKEND=jax python -m tests.numeric.keras_nets [name ...]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import relay
from relay.frontend import from_keras
from relay.interpreters import run


class Net(NamedTuple):
    name: str
    size: int = 64
    """Height and width of the images."""
    quantized: bool = False


NETS = [
    Net("MobileNet"), Net("MobileNetV2"), Net("MobileNetV3Small"), Net("ResNet50"), Net("ResNet50V2"),
    Net("EfficientNetB0"), Net("EfficientNetV2B0"), Net("DenseNet121"), Net("NASNetMobile"), Net("Xception", 75),
    Net("ConvNeXtTiny"), Net("VGG16"), Net("MobileNetV2", quantized=True),
]  # fmt: skip


def made(net: Net) -> Any:
    """The model; statistics of batch normalizations are random near those of a training."""
    keras: Any = import_module("keras")
    keras.utils.set_random_seed(0)
    shape = (net.size, net.size, 3)
    model = getattr(keras.applications, net.name)(weights=None, input_shape=shape, classifier_activation=None)
    rng: Any = np.random.default_rng(0)
    for weight in model.weights:
        if weight.path.endswith(("moving_mean", "beta", "bias")):
            weight.assign(rng.normal(0, 0.1, weight.shape).astype(np.float32))
        elif weight.path.endswith(("moving_variance", "gamma")) and "layer_scale" not in weight.path:
            weight.assign(rng.uniform(0.8, 1.2, weight.shape).astype(np.float32))
    if net.quantized:
        model.quantize("int8")
    return model


def difference(net: Net, compiled: bool) -> float:
    """The largest difference of the logits by the largest logit, of a saved file."""
    model = made(net)
    x = np.random.default_rng(1).uniform(0, 255, (1, net.size, net.size, 3)).astype(np.float32)
    wanted = np.asarray(model(x, training=False))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.keras"
        model.save(path)
        found = execute(path, compiled)(x)
    return float(np.abs(np.asarray(found).reshape(wanted.shape) - wanted).max() / np.abs(wanted).max())


def execute(path: Path, compiled: bool) -> Callable[[Any], Any]:
    if compiled:
        return relay.build(str(path), frontend={"batch": 1})
    module = from_keras(path, batch=1)
    return lambda x: run(module, [x])[0]


def main(*names: str) -> None:
    compiled = "compiled" in names
    for net in NETS:
        if names and net.name not in names and names != ("compiled",):
            continue
        print(f"{net.name}{' int8' * net.quantized} {difference(net, compiled):.1e}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
