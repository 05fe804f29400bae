"""An external compiler's second half that is the interpreter: artifacts are text, loaders run it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from relay.byoc.compiler import Artifact
from relay.dialects.attributes import Array
from relay.interpreters import run
from relay.module import IRModule
from relay.runtime.loaders import Run


def as_text(function: FuncOp) -> Artifact:
    """The function as a module of its own."""
    mod, copy = IRModule(), function.clone()
    del copy.attributes["compiler"]
    mod["main"] = copy
    return Artifact(mod.to_text(weights=True).encode())


def load_text(
    artifact: bytes, symbol: str, params: Mapping[str, Array], inputs: Sequence[Any], outputs: Sequence[Any]
) -> Run:
    """Runs the module in the interpreter."""
    mod = IRModule.parse(artifact.decode())

    def interpret(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        for array, result in zip(outputs, run(mod, inputs), strict=True):
            array[...] = result

    return interpret


def computing(op: Operation) -> bool:
    """Whether the op is one of a model."""
    return op.name.startswith("relay.")
