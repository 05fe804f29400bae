"""Running what was built for a GPU: a driver, none, one that refuses; saving and loading."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

import relay
from relay.compile import gpu
from relay.errors import InvalidArgument, Unsupported
from relay.runtime import Executable, opencl_driver
from relay.runtime.cuda_driver import CudaDriver, CudaError, check_device
from relay.runtime.device import DeviceLibrary
from relay.runtime.opencl_driver import OpenClDriver
from relay.store import Store
from tests.marks import ci
from tests.unit.gpu_driver import DIGITS, copies, digits, emulated_cuda


@pytest.fixture
def executable() -> Executable:
    """One that no device knows yet."""
    return relay.runtime.create(*digits())


def test_runs_are_one_graph_each(executable: Executable):
    data = np.load(DIGITS / "digits_test.npz")
    with emulated_cuda(executable) as driver:
        for image, want in zip(data["int8_images"][:3], data["int8_out"][:3], strict=True):
            assert np.array_equal(np.asarray(executable.run(image[None]))[0], want)
    launches = len(executable.graph["device"]["launches"])
    assert copies(driver.calls) == ["up", "up", "down"]
    assert driver.calls.count("cuLaunchKernel") == launches and driver.calls.count("cuGraphLaunch") == 3
    again = ["cuCtxPushCurrent_v2", "cuGraphLaunch", "cuStreamSynchronize", "cuCtxPopCurrent_v2"]
    assert driver.calls[-8:] == 2 * again


def test_everything_is_given_back():
    executable = relay.runtime.create(*digits())
    with emulated_cuda(digits()) as driver:
        image = np.zeros(executable.inputs[0].shape, np.int8)
        executable.run(image)
        held = len(driver.held)
        session = executable.on(1)
        outputs = [session.run(image) for _ in range(2)]
        assert not isinstance(outputs[0], tuple) and len(driver.memory) == 3 + 5
        del session, outputs
        gc.collect()
        assert len(driver.memory) == 3 + 1  # the second device keeps the model
        del executable
        gc.collect()
        assert held and not driver.memory and not driver.held


def test_ptx_is_assembled_once_for_a_device_and_a_driver(
    executable: Executable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path))
    for capability, linked in [((9, 0), 1), ((9, 0), 0), ((8, 6), 1)]:
        loaded = relay.runtime.create(*executable)
        with emulated_cuda(executable, capability=capability) as driver:
            loaded.run(np.zeros(loaded.inputs[0].shape, np.int8))
            assert driver.calls.count("cuLinkComplete") == linked
    assert len(list(tmp_path.glob("cubin-*"))) == 2


def test_a_kept_module_that_is_refused_is_made_again(
    executable: Executable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path))
    for linked, damaged in ((1, True), (1, False), (0, False)):
        loaded = relay.runtime.create(*executable)
        with emulated_cuda(executable) as driver:
            loaded.run(np.zeros(loaded.inputs[0].shape, np.int8))
            assert driver.calls.count("cuLinkComplete") == linked
        if damaged:
            (key,) = (path.name for path in tmp_path.glob("cubin-*"))
            Store(tmp_path).put(key, b"of another driver")


@pytest.mark.parametrize(
    "refused",
    [
        ("cuMemAlloc_v2", 3),
        *(pytest.param(("cuMemAlloc_v2", n), marks=pytest.mark.ci) for n in (1, 2)),
        *ci((("cuMemAllocHost_v2", 2), ("cuMemcpyHtoDAsync_v2", 1))),
    ],
)
def test_what_does_not_start_is_given_back(refused: tuple[str, int]):
    executable = relay.runtime.create(*digits())
    image = np.zeros(executable.inputs[0].shape, np.int8)
    with emulated_cuda(digits()) as driver:
        driver.refused = refused
        with pytest.raises(CudaError, match="OUT_OF_MEMORY"):
            executable.run(image)
        executable.run(image)
        del executable
        gc.collect()
        assert not driver.memory and not driver.held


def test_a_run_after_one_that_failed(executable: Executable):
    data = np.load(DIGITS / "digits_test.npz")
    with emulated_cuda(executable) as driver:
        driver.refused = ("cuLaunchKernel", 2)
        with pytest.raises(CudaError, match="OUT_OF_MEMORY"):
            executable.run(data["int8_images"][:1])
        assert np.array_equal(np.asarray(executable.run(data["int8_images"][:1])), data["int8_out"][:1])


def test_errors_of_the_driver_have_its_names(executable: Executable):
    with emulated_cuda(), pytest.raises(CudaError) as raised:
        relay.runtime.create(*executable).run(np.zeros(executable.inputs[0].shape, np.int8))
    name = "CUDA_ERROR_INVALID_PTX (refused)"
    assert str(raised.value) == f"cuda: cuLinkAddData_v2: failed: {name}; ptxas fatal: unknown kernels"


@pytest.mark.parametrize("chip, have", [("sm_90", (8, 0)), ("sm_90a", (10, 0)), ("sm_90a", (8, 9)), ("sm_100", (9, 0))])
def test_device_must_be_new_enough(chip: str, have: tuple[int, int]):
    what = f"emulator is sm_{have[0]}{have[1]}, and the code is for {chip}; build for"
    with emulated_cuda(capability=have), pytest.raises(Unsupported, match=what):
        check_device(CudaDriver(), chip)


@pytest.mark.parametrize("chip, have", [("sm_80", (8, 0)), ("sm_80", (12, 0)), ("sm_90a", (9, 0))])
def test_device_is_new_enough(chip: str, have: tuple[int, int]):
    with emulated_cuda(capability=have):
        check_device(CudaDriver(), chip)


def test_no_driver_is_one_clear_error():
    with pytest.raises(Unsupported, match='cuda: there is no driver: libnone.so cannot be loaded; .*"llvm" runs on'):
        CudaDriver("libnone.so")


def test_a_library_that_is_no_driver():
    with pytest.raises(Unsupported, match="cuda: the driver has no cuInit"):
        CudaDriver("libm.so.6")


def test_saved_and_loaded(executable: Executable, tmp_path: Path):
    data = np.load(DIGITS / "digits_test.npz")
    executable.save(tmp_path / "digits.relay")
    loaded = relay.runtime.load(tmp_path / "digits.relay")
    with emulated_cuda(executable):
        assert np.array_equal(np.asarray(loaded.run(data["int8_images"][:1])), data["int8_out"][:1])


def test_no_opencl_is_one_clear_error():
    with pytest.raises(Unsupported, match=r"opencl: libnone.so cannot be loaded .*; pip install .*\[opencl\]' brings"):
        OpenClDriver("libnone.so")
    with pytest.raises(Unsupported, match="opencl: libm.so.6 has no clGetPlatformIDs"):
        OpenClDriver("libm.so.6")


def test_packages_without_opencl_leave_the_error_of_the_loader(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(opencl_driver, "PACKAGE", "no-such-package")
    monkeypatch.setattr(opencl_driver, "LIBRARY", "libnone.so")
    opencl_driver.driver.cache_clear()
    with pytest.raises(Unsupported, match="opencl: libnone.so cannot be loaded"):
        opencl_driver.driver(0)


def test_built_again_it_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path))
    path = DIGITS / "digits_int8.tflite"
    first = relay.build(path, target="cuda")
    monkeypatch.delattr(gpu, "compile_kernels")
    second = relay.build(path, target="cuda")
    assert isinstance(second.library, DeviceLibrary) and second.library.code == first.library.code
    assert second.get_source("ptx") == first.get_source("ptx") == first.library.code.decode()
    with pytest.raises(InvalidArgument, match="the sources are: ll, mlir, ptx"):
        second.get_source("asm")
