"""Runs a model with IREE's llvm-cpu backend, imported through TOSA, with data tiling and micro-kernels."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from relay.tools.peers import Array, Session, Skipped

PACKAGE = "iree-base-compiler"
OPTIONS = ("--iree-llvmcpu-target-cpu=host", "--iree-opt-data-tiling", "--iree-opt-level=O3")


def load(model: Path, threads: int, inputs: Sequence[Array]) -> Session:
    """Compile `main` and bind its inputs as device buffers; a timed call lasts until its results are on the host.
    Raises Skipped without `tosa-converter-for-tflite`."""
    converter = Path(sys.executable).with_name("tosa-converter-for-tflite")
    if shutil.which(converter) is None:
        raise Skipped("tosa-converter-for-tflite is not installed")
    compiler, runtime = import_module("iree.compiler"), import_module("iree.runtime")
    with tempfile.TemporaryDirectory() as folder:
        tosa = Path(folder) / "model.mlirbc"
        subprocess.run([converter, model, "--bytecode", "-o", tosa], check=True, capture_output=True)
        code = compiler.compile_file(
            str(tosa), input_type="tosa", target_backends=["llvm-cpu"], extra_args=list(OPTIONS)
        )
    driver = "local-sync" if threads == 1 else "local-task"
    if threads > 1:
        runtime.flags.parse_flags(f"--task_topology_group_count={threads}")
    config = runtime.Config(driver)
    module = runtime.load_vm_module(runtime.VmModule.copy_buffer(config.vm_instance, code), config)
    buffers = [runtime.asdevicearray(config.device, np.ascontiguousarray(array)) for array in inputs]

    def call() -> Sequence[Array]:
        results: Any = module.main(*buffers)
        one = not hasattr(results, "__iter__") or hasattr(results, "to_host")
        return [np.asarray(result) for result in ([results] if one else results)]

    return Session(call, call)
