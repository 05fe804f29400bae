"""Programs whose PTX is interpreted, and the integers that they must give."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

import relay
from relay.dialects.attributes import Array
from relay.interpreters import run
from relay.lowering.gpu.tiles import BulkTile, GroupTile, TurnTile
from relay.runtime import Executable
from tests.numeric.gpu_models import golden_of
from tests.numeric.test_gpu_warpgroups import TARGET, convolution, only, product, turns, windows
from tests.numeric.test_models_compiled import DIGITS
from tests.numeric.test_models_interpreted import MODELS


@dataclass(frozen=True)
class Program:
    """A built model, inputs, and the outputs that another oracle has for them."""

    executable: Executable
    inputs: list[Array]
    wanted: list[Array]


@cache
def digits() -> Program:
    """The integers are LiteRT's."""
    data = np.load(DIGITS / "digits_test.npz")
    executable = relay.build(DIGITS / "digits_int8.tflite", target="cuda")
    return Program(executable, [data["int8_images"][:1]], [data["int8_out"][:1]])


@cache
def model(name: str, target: str = "cuda") -> Program:
    """One of the models beside the checkout, with what LiteRT gives for its first inputs."""
    path = MODELS / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"the model {name} is not here")
    inputs, outputs = golden_of(path)
    return Program(relay.build(path, target=target), inputs[0], outputs[0])


@cache
def group_product(name: str) -> Program:
    """A product by groups of warps, which tests of one tile choose; the integers are the interpreter's of relay."""
    net, tile = {
        "tma": (product("int8", "int8", 200, 640, 48), GroupTile(128, 64, 8, 1, 4)),
        "three-groups": (product("int8", "int8", 200, 640, 144), BulkTile(192, 128, 12, 1, 3)),
        "tma-unsigned": (product("uint8", "int8", 128, 512, 144), GroupTile(64, 128, 4, 1, 3)),
        "cp.async": (convolution("int8", "int8", 80), GroupTile(128, 64, 8, 1, 4)),
        "windows": (windows("int8", 3, (9, 9, 128), 80), TurnTile(128, 64, 4, 1, 3)),
        "windows-of-few-channels": (windows("uint8", 3, (9, 9, 64), 80, stride=2), TurnTile(128, 64, 4, 1, 3)),
        "turns": (product("int8", "int8", 840, 640, 48), TurnTile(128, 64, 4, 1, 3)),
    }[name]
    target = turns(2) if isinstance(tile, TurnTile) else TARGET
    with pytest.MonkeyPatch.context() as patch:
        only(tile, patch)
        module = net.module()
        return Program(relay.build(module, target=target), net.inputs, [*run(module, net.inputs)])


@cache
def convolution_of_warps() -> Program:
    """By mma.sync, for any chip from sm_80 on; the integers are the interpreter's of relay."""
    net = convolution("int8", "int8", 80)
    module = net.module()
    return Program(relay.build(module, target="cuda"), net.inputs, [*run(module, net.inputs)])


@cache
def product_of_slices() -> Program:
    """A product of few tiles, whose depth warps of a block share."""
    net = product("int8", "int8", 49, 1024, 64)
    module = net.module()
    return Program(relay.build(module, target=TARGET), net.inputs, [*run(module, net.inputs)])


def program(name: str) -> Program:
    """One of those above."""
    if name in ("digits", "warps"):
        return digits() if name == "digits" else convolution_of_warps()
    return product_of_slices() if name == "slices" else group_product(name)
