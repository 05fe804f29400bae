"""A module with two functions of an external compiler, the compiler, and its loader, for tests of what runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

import relay
from relay.byoc import Artifact, BuildInfo, Compiler
from relay.byoc import registry as compilers
from relay.dialects.attributes import Array
from relay.runtime import Executable, Native, accepts, loaders

TEXT = """
func.func @main(%x: tensor<4xf32>, %c: tensor<40x5xui8>) -> (tensor<4xf32>, tensor<4xf32>, tensor<40x5xui8>) {
  %a = relay.multiply %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %p, %q = func.call @both(%a, %x) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %b = relay.multiply %p, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d = func.call @turn(%c) : (tensor<40x5xui8>) -> tensor<40x5xui8>
  func.return %b, %q, %d : tensor<4xf32>, tensor<4xf32>, tensor<40x5xui8>
}
func.func private @both(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    attributes {compiler = "probe", global_symbol = "both"} {
  %s = relay.add %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d = relay.subtract %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %s, %d : tensor<4xf32>, tensor<4xf32>
}
func.func private @turn(%x: tensor<40x5xui8>) -> tensor<40x5xui8>
    attributes {compiler = "probe", global_symbol = "turn"} {
  %r = relay.maximum %x, %x : (tensor<40x5xui8>, tensor<40x5xui8>) -> tensor<40x5xui8>
  func.return %r : tensor<40x5xui8>
}
"""
X, C = np.arange(4, dtype=np.float32) + 1, np.arange(200, dtype=np.uint8).reshape(40, 5)
OFFSET = np.array([8, 4, 2, 1], np.float32)
Run = Callable[[Sequence[Array], Sequence[Array]], None]


@dataclass(frozen=True)
class Probe(Compiler):
    """Its artifacts are the functions' names; both come with the same constant."""

    name: ClassVar[str] = "probe"
    version: ClassVar[str] = "3"

    def compile(self, function: FuncOp, build: BuildInfo) -> Artifact:
        ops = "\n".join(op.name for op in function.body.block.ops)
        return Artifact(function.sym_name.data.encode(), {"offset": OFFSET}, {"ops": ops})


class Loads:
    """Loads `both` and `turn` as functions in Python, or as others that a test gives."""

    def __init__(self) -> None:
        self.given: dict[str, tuple[Any, ...]] = {}
        self.seen: list[tuple[int, bool]] = []
        self.other: dict[str, Native | Run] = {}

    def __call__(
        self, artifact: bytes, symbol: str, params: Mapping[str, Array], inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Native | Run:
        self.given[symbol] = artifact, dict(params), list(inputs), list(outputs)
        if symbol in self.other:
            return self.other[symbol]

        def both(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
            np.add(inputs[0], inputs[1] + params["offset"], out=outputs[0])
            np.subtract(inputs[0], inputs[1], out=outputs[1])

        def turn(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
            self.seen.append((inputs[0].ctypes.data, inputs[0].flags.writeable))
            outputs[0][...] = inputs[0][::-1]

        return both if artifact == b"both" else turn


def install(monkeypatch: pytest.MonkeyPatch) -> Loads:
    """Make `probe` known for the time of a test; returns its loader, which takes artifacts of versions 2 and 3."""
    found = accepts("2", "3")(Loads())
    monkeypatch.setitem(compilers.COMPILERS.registered, "probe", Probe)
    monkeypatch.setitem(loaders.LOADERS.registered, "probe", found)
    return found


def built() -> Executable:
    return relay.build(relay.IRModule.parse(TEXT))


def check(executable: Executable, x: Array = X, c: Array = C) -> None:
    found = executable.run(x, c)
    assert isinstance(found, tuple)
    for array, wanted in zip(found, [(x * x + x + OFFSET) * x, x * x - x, c[::-1]], strict=True):
        assert array.dtype == wanted.dtype and np.array_equal(array, wanted)
