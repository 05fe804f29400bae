"""Accelerators by their C library: states, statuses, tensors that stay on the device; what compilers give back."""

from __future__ import annotations

import ctypes
import gc
import re
import shutil
import struct
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

import relay
from relay import IRModule
from relay.byoc import Artifact, BuildInfo, Compiler, Refusal, registry, settings
from relay.byoc.c import export_c
from relay.dialects import relay as ops
from relay.dialects.attributes import Array
from relay.dialects.op import shape
from relay.errors import RelayError, Unsupported
from relay.runtime import Executable, Native, loaders, open_device
from relay.runtime.memory import Form

PROGRAM = """#include "model.h"
#include <stdio.h>
static union {
    uint8_t bytes[MODEL_ARENA_BYTES + 64];
    int64_t alignment;
} arena;

int main(void)
{
    static float x[MODEL_INPUT_0_COUNT], y[MODEL_OUTPUT_0_COUNT];
    void *const start = arena.bytes + (64 - (uintptr_t)arena.bytes % 64);
    int status = model_init(), runs;
    if (status == 0) {
        for (runs = 0; runs < 2 && status == 0; ++runs) {
            if (fread(x, sizeof x, 1, stdin) != 1)
                return 1;
            status = model_run(start, x, y);
            if (status == 0)
                fwrite(y, sizeof y, 1, stdout);
        }
        model_destroy();
    }
    fprintf(stderr, "%d %s %d", status, status > 0 ? model_regions[status - 1].name : "none",
            (int)model_regions[status > 0 ? status - 1 : 0].status);
    return 0;
}
"""
EXAMPLE = Path(__file__).parents[2] / "examples/accelerator/device.c"
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
CHAIN = """func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = relay.negative %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = relay.negative %0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = relay.negative %1 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = relay.exp %2 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %3 : tensor<4x8xf32>
}"""
X = np.linspace(-2, 2, 32, dtype=np.float32).reshape(4, 8)
KEEPS_INPUT, KEEPS_OUTPUT, BROKEN, USES_WORKSPACE = 1, 2, 4, 8


@dataclass(frozen=True)
class Dsp(Compiler):
    """Functions of one negation, by the example's device; `does` says what it makes of the others."""

    name: ClassVar[str] = "dsp"
    seen: ClassVar[list[BuildInfo]] = []
    forms: ClassVar[list[list[Form]]] = []
    fault: int = 0
    does: str = ""
    workspace: int = 0

    def supports(self, op: Operation) -> bool:
        return isinstance(op, ops.NegativeOp)

    def compile(self, function: FuncOp, build: BuildInfo) -> Artifact | Refusal | FuncOp:
        self.seen.append(build)
        first, _ = function.body.block.ops
        if self.does == "refuses all" or (self.does == "refuses one" and function.sym_name.data.endswith("1")):
            return Refusal("its program memory is full")
        if self.does == "gives ops":
            text = str(function).replace("relay.negative", "relay.abs").replace("private ", "")
            return IRModule.parse(text)[function.sym_name.data].clone()
        flags = self.fault | KEEPS_INPUT * (0 in build.own_inputs) | KEEPS_OUTPUT * (0 in build.own_outputs)
        count = prod(shape(first.results[0]))
        data = b"" if self.does == "writes no program" else struct.pack("<II", count, flags)
        device = "" if self.does == "names no device" else "device"
        params = {"factor": np.array([-1], np.float32)}
        return Artifact(data, params, device=device, workspace=self.workspace)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's library."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler is installed")
    made = tmp_path_factory.mktemp("device") / "libdevice.so"
    subprocess.run(["cc", *STRICT, "-shared", "-fPIC", str(EXAMPLE), "-o", str(made)], check=True)
    return made


@pytest.fixture
def library(compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ctypes.CDLL:
    """A copy of it, with counters of its own; `dsp` is known, and runs by it."""
    opened = ctypes.CDLL(str(shutil.copy(compiled, tmp_path)))

    def load(
        artifact: bytes, symbol: str, params: Mapping[str, Array], inputs: Sequence[Form], outputs: Sequence[Form]
    ) -> Native:
        Dsp.forms.append(list(outputs))
        return open_device(opened, "device", artifact, symbol, params)

    monkeypatch.setitem(registry.COMPILERS.registered, "dsp", Dsp)
    monkeypatch.setitem(loaders.LOADERS.registered, "dsp", load)
    Dsp.seen.clear()
    Dsp.forms.clear()
    return opened


def partitioned(**options: object) -> IRModule:
    """The chain, each negation a function of its own."""
    mod = IRModule.parse(CHAIN)
    settings.write(mod.op, {"dsp": options})
    return relay.transform.PartitionGraph()(relay.transform.AnnotateExternalCompiler("dsp")(mod))


def built(**options: object) -> Executable:
    return relay.build(partitioned(**options))


def right(executable: Executable, x: Array = X) -> bool:
    found = executable.run(x)
    return isinstance(found, np.ndarray) and np.allclose(found, np.exp(-x))


def test_tensors_stay_on_the_device_between_functions_of_its_own(library: ctypes.CDLL):
    executable = built()
    assert [(info.own_inputs, info.own_outputs) for info in Dsp.seen] == [((), (0,)), ((0,), (0,)), ((0,), ())]
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(right, [executable] * 20, [X * (n / 10) for n in range(20)]))
    living = ctypes.c_int32.in_dll(library, "device_living")
    assert living.value == 3
    del executable
    gc.collect()
    assert living.value == 0


def test_a_device_that_fails_names_itself(library: ctypes.CDLL):
    wrong = (
        "external function relay_dsp_main_0, compiled by 'dsp': failed with status 3: the watchdog stopped the device"
    )
    with pytest.raises(RelayError, match=f"^{wrong}$"):
        built(fault=BROKEN).run(X)
    wrong = "external function f: cannot be loaded: device_init failed with status 1: these bytes are no program"
    with pytest.raises(RelayError, match=f"^{wrong}$"):
        open_device(library, "device", b"", "f", {"factor": np.ones(1, np.float32)})
    with pytest.raises(RelayError, match="external function f: its library has not all functions of a device: "):
        open_device(library, "other", b"", "f", {})


WORKING: dict[str, object] = {"fault": USES_WORKSPACE, "workspace": 4 * X.size}


def test_a_workspace_lies_in_the_host_s_arena(library: ctypes.CDLL, tmp_path: Path):
    """Behind the outputs, beside all tensors that live meanwhile, in memory that no other run has."""
    executable = built(**WORKING)
    executable.save(tmp_path / "model.relay")
    loaded = relay.runtime.load(tmp_path / "model.relay")
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(right, [executable, loaded] * 10, [X * (n / 10) for n in range(20)]))
    assert Dsp.forms == [[((4, 8), np.dtype(np.float32)), ((128,), np.dtype(np.uint8))]] * 6


@pytest.mark.parametrize("wrong", [-1, "much"])
def test_a_workspace_is_a_number_of_bytes(library: ctypes.CDLL, wrong: object):
    with pytest.raises(RelayError, match="its workspace is .*, no number of bytes"):
        built(workspace=wrong)


@pytest.mark.parametrize(("does", "left"), [("refuses one", 2), ("refuses all", 0)])
def test_what_is_refused_at_last_is_the_host_s(library: ctypes.CDLL, does: str, left: int):
    """And the neighbours of what is given back are compiled for what they then are."""
    done = relay.transform.CompileExternal()(partitioned(does=does))
    report = done.partition_report()
    assert len(report.of("dsp")) == left and str(report).count("its program memory is full") >= 1
    executable = relay.build(done)
    assert right(executable) and len(executable.externals) == left
    if left:
        assert [(info.own_inputs, info.own_outputs) for info in Dsp.seen[-2:]] == [((), ()), ((), ())]


def test_ops_that_a_compiler_gives_are_the_host_s(library: ctypes.CDLL):
    executable = built(does="gives ops")
    found = executable.run(X)
    assert isinstance(found, np.ndarray) and not executable.externals
    assert np.allclose(found, np.exp(np.abs(X)))


def exported(how: str, folder: Path, **options: object) -> tuple[bytes, str]:
    """What the partitioned chain computes for two inputs as a program of C, with the example's library, and what it
    says: the status, the function that failed, and its status."""
    parted = partitioned(**options)
    if how == "c":
        export_c(parted, folder)
    else:
        relay.build(parted).export(folder, "model")
    run = "model_run_in" if how == "c" else "model_run"
    (folder / "main.c").write_text(PROGRAM.replace("model_run", run))
    (folder / "device.c").write_bytes(EXAMPLE.read_bytes())
    files = ["main.c", "model_regions.c", "device.c", "model.c" if how == "c" else "model.o"]
    subprocess.run(["cc", *STRICT, "-Wconversion", *files, "-o", "program", "-lm"], cwd=folder, check=True)
    told = (folder / "model.md").read_text()
    (folder / "main.c").write_text(re.findall(r"^```c\n(#include.*?)^```$", told, re.MULTILINE | re.DOTALL)[0])
    subprocess.run(["cc", *STRICT, "-std=c11", *files, "-o", "example", "-lm"], cwd=folder, check=True)
    if not options:
        subprocess.run(["./example"], cwd=folder, check=True)
    given = X.tobytes() + (X / 3).tobytes()
    done = subprocess.run(["./program"], cwd=folder, input=given, capture_output=True, check=True)
    return done.stdout, done.stderr.decode()


@pytest.mark.parametrize("how", ["c", pytest.param("object", marks=pytest.mark.ci)])
def test_devices_in_exported_programs(library: ctypes.CDLL, how: str, tmp_path: Path):
    """Tensors stay on the device there, too, and what fails is told."""
    found, said = exported(how, tmp_path)
    assert said == "0 none 0"
    values = np.frombuffer(found, np.float32).reshape(2, 4, 8)
    assert np.allclose(values, [np.exp(-X), np.exp(-X / 3)])
    assert exported(how, tmp_path, **WORKING) == (found, said)
    assert exported(how, tmp_path, fault=BROKEN) == (b"", "1 relay_dsp_main_0 3")


def test_a_device_that_does_not_start_in_an_exported_program(library: ctypes.CDLL, tmp_path: Path):
    assert exported("c", tmp_path, does="writes no program") == (b"", "1 relay_dsp_main_0 1")


def test_what_no_functions_run_is_not_exported(library: ctypes.CDLL, tmp_path: Path):
    what = "external function relay_dsp_main_0: was compiled by 'dsp', which names no C functions that run it; build it"
    with pytest.raises(Unsupported, match=f"^export: {what}"):
        export_c(partitioned(does="names no device"), tmp_path)
    with pytest.raises(Unsupported, match=f"^export: {what}"):
        built(does="names no device").export(tmp_path)
