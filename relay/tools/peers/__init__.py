"""Who is measured: one adapter a file, each with `PACKAGE` and `load`; `PEERS` is the order of the tables."""

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
    """A peer does not take the model, or this number of threads."""


@dataclass(frozen=True)
class Session:
    """A loaded model with inputs bound: what is timed, and how to read the outputs."""

    call: Callable[[], object]
    outputs: Callable[[], Sequence[Array]]


class Peer(Protocol):
    """What an adapter module offers."""

    PACKAGE: str
    """The distribution that must be installed."""

    def load(self, model: Path, threads: int, inputs: Sequence[Array]) -> Session:
        """Load (compile) the model and bind its inputs. Raises Skipped."""
        ...


def importer_options(model: Path, inputs: Sequence[Array]) -> dict[str, Any]:
    """What our importer is told of these inputs: their shapes, and of an ONNX model those of rank 0 as constants, since
    branches may depend on them."""
    if model.suffix != ".onnx":
        return {}
    graph = import_module("onnx").load(str(model), load_external_data=False).graph
    held = {tensor.name for tensor in graph.initializer}
    names = [port.name for port in graph.input if port.name not in held]
    given = dict(zip(names, inputs, strict=True))
    shapes = {name: array.shape for name, array in given.items() if array.ndim}
    return {"shapes": shapes, "constants": {name: array for name, array in given.items() if not array.ndim}}


def adapter(name: str) -> Peer:
    """The adapter of this name."""
    return cast(Peer, import_module(f"relay.tools.peers.{name}"))


def installed(name: str) -> str | None:
    """The version of a peer, None if it is absent."""
    if name == "ours":
        return relay.__version__
    try:
        return version(adapter(name).PACKAGE)
    except PackageNotFoundError:
        return None
