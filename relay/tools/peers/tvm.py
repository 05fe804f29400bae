"""Runs a .tflite model with Apache TVM (Relax) and its default CPU pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from relay.tools.peers import Array, Session, Skipped

PACKAGE = "apache-tvm"


def load(model: Path, threads: int, inputs: Sequence[Array]) -> Session:
    """Compile the model; a call of the virtual machine's `main` is timed. Needs the package `tflite`, which parses the
    format. Raises Skipped for more than one thread."""
    if threads != 1:
        raise Skipped("its threads are set for the process")
    tvm = import_module("tvm")
    parsed = import_module("tflite").Model.GetRootAsModel(model.read_bytes(), 0)
    module = import_module("tvm.relax.frontend.tflite").from_tflite(parsed)
    cpu = import_module("llvmlite.binding").get_host_cpu_name()
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": 1})
    machine = tvm.relax.VirtualMachine(tvm.compile(module, target), tvm.cpu())
    arrays = [tvm.runtime.tensor(array) for array in inputs]

    def outputs() -> Sequence[Array]:
        results = machine["main"](*arrays)
        return [result.numpy() for result in (results if hasattr(results, "__len__") else [results])]

    main = machine["main"]
    return Session(lambda: main(*arrays), outputs)
