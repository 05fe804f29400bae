"""Other runtimes with which relay's speed is compared, one module each with `PACKAGE` and `load`; `PEERS` is their
order in the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol, cast

import numpy.typing as npt

import relay

Array = npt.NDArray[Any]

PEERS = ("ours", "litert", "openvino", "onnxruntime", "iree", "tvm")


class Skipped(Exception):
    """Raised by a runtime's module that cannot run the model, or not with this number of threads."""


@dataclass(frozen=True)
class Session:
    """A loaded model with its inputs bound: `call` runs it once and is timed, `outputs` returns the result arrays."""

    call: Callable[[], object]
    outputs: Callable[[], Sequence[Array]]


class Peer(Protocol):
    """The interface of a module of `relay.tools.peers`, which runs models with one other runtime."""

    PACKAGE: str
    """The Python distribution that must be installed."""

    def load(self, model: Path, threads: int, inputs: Sequence[Array]) -> Session:
        """Load (and compile) the model and bind its inputs. Raises Skipped."""
        ...


def importer_options(model: Path, inputs: Sequence[Array]) -> dict[str, Any]:
    """The options of relay's importer for these inputs: their shapes and, for an ONNX model, the inputs of rank 0 as
    constants, since branches may depend on them. Empty for other formats."""
    if model.suffix != ".onnx":
        return {}
    graph = import_module("onnx").load(str(model), load_external_data=False).graph
    held = {tensor.name for tensor in graph.initializer}
    names = [port.name for port in graph.input if port.name not in held]
    given = dict(zip(names, inputs, strict=True))
    shapes = {name: array.shape for name, array in given.items() if array.ndim}
    return {"shapes": shapes, "constants": {name: array for name, array in given.items() if not array.ndim}}


def adapter(name: str) -> Peer:
    """Import the module `relay.tools.peers.NAME`, which runs models with the runtime of this name."""
    return cast(Peer, import_module(f"relay.tools.peers.{name}"))


def installed(name: str) -> str | None:
    """The installed version of a runtime; None if it is not installed."""
    if name == "ours":
        return relay.__version__
    try:
        return version(adapter(name).PACKAGE)
    except PackageNotFoundError:
        return None
