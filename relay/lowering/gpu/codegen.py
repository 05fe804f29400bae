"""Compiles the LLVM IR of kernels to PTX or SPIR-V in a separate process; results are cached."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import llvmlite

from relay.errors import Unsupported
from relay.store import key_of, store
from relay.target import GpuTarget

CHILD = "relay.lowering.gpu.llvm_child"
SETTINGS = ("--disable-lsr",)
"""LLVM options for SPIR-V: they disable loop strength reduction, which truncates a dividend to the few bits of its
remainder. The code generator would widen such a value to a byte without clearing its upper bits."""
TIMEOUT = 1800
"""The time limit in seconds for one module, far above the usual time."""


@dataclass(frozen=True)
class DeviceCode:
    """The kernels of a model: LLVM IR text, and PTX (text) or SPIR-V (words)."""

    text: str
    code: bytes
    format: Literal["assembly", "bin"]

    @property
    def assembly(self) -> str:
        """The PTX text."""
        return self.code.decode()


def compile_kernels(text: str, target: GpuTarget, level: int = 3) -> DeviceCode:
    """Compile LLVM IR text for a GPU. Raises Unsupported if LLVM cannot compile it."""
    format: Literal["assembly", "bin"] = "assembly" if target.kind == "cuda" else "bin"
    extensions = [f"--spirv-ext={target.extensions}"] if target.extensions else []
    options = {
        "triple": target.triple,
        "cpu": target.cpu,
        "features": target.feature_string,
        "level": level,
        "format": format,
        "settings": list[str]() if target.kind == "cuda" else [*SETTINGS, *extensions],
    }
    line = json.dumps(options)
    kept = store()
    key = key_of("kernels", text, line, llvmlite.__version__)
    code = None if kept is None else kept.get(key)
    if code is None:
        code = run(f"{line}\n{text}".encode(), target)
        if kept is not None:
            kept.put(key, code)
    return DeviceCode(text, code, format)


def run(request: bytes, target: GpuTarget) -> bytes:
    """Start a Python process that compiles kernels with LLVM (`CHILD`), write the request to its stdin, and return its
    stdout. Raises Unsupported if the process fails."""
    if not sys.executable:
        raise Unsupported(target.kind, "needs a Python to start, and this program is none", "set sys.executable")
    here = str(Path(__file__).parents[3])
    known = os.environ.get("PYTHONPATH")
    environment = os.environ | {"PYTHONPATH": f"{here}{os.pathsep}{known}" if known else here}
    command = [sys.executable, "-m", CHILD]
    try:
        done = subprocess.run(command, input=request, capture_output=True, env=environment, timeout=TIMEOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unsupported(target.kind, f"the process that compiles kernels failed: {error}") from None
    if done.returncode != 0 or not done.stdout:
        raise Unsupported(f"{target.kind}: {target.cpu or target.triple}", f"LLVM refused a kernel: {reason(done)}")
    return done.stdout


def reason(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return why the process that compiles kernels failed: the first line of its standard error that contains "error",
    or else the first line, or its exit code if there is none. LLVM's messages precede the traceback."""
    lines = [line.strip() for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors[:1] or lines[-1:] or [f"it ended with code {done.returncode}"])[0]
