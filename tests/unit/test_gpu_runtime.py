"""Running what was built for a GPU: a driver, none, one that refuses; saving and loading."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relay
from relay.errors import InvalidArgument, Unsupported
from relay.runtime import Executable
from relay.runtime.cuda_driver import CudaDriver, check_device
from relay.runtime.device import DeviceLibrary
from relay.runtime.device_program import DeviceProgram
from relay.runtime.opencl_driver import OpenClDriver
from tests.unit.gpu_driver import EmulatedDriver

DIGITS = Path(__file__).parents[2] / "examples" / "digits"


@pytest.fixture(scope="module")
def executable() -> Executable:
    return relay.build(DIGITS / "digits_int8.tflite", target="cuda")


def on(executable: Executable, driver: EmulatedDriver) -> None:
    library = executable.library
    assert isinstance(library, DeviceLibrary)
    library.program = DeviceProgram(driver, library.code, executable.graph)


def test_runs_are_one_graph_each(executable: Executable):
    data = np.load(DIGITS / "digits_test.npz")
    driver = EmulatedDriver(executable.get_source("ll"))
    on(executable, driver)
    for image, want in zip(data["int8_images"][:3], data["int8_out"][:3], strict=True):
        assert np.array_equal(np.asarray(executable.run(image[None]))[0], want)
    launches = len(executable.graph["device"]["launches"])
    once = ["upload", "wait", "upload", *["launch"] * launches, "download"]
    done = [call for call in driver.calls if call != "enter"]
    assert done == [name.replace("download", "upload") for name in once] + ["replay", "wait"] * 3


def test_everything_is_given_back(executable: Executable):
    driver = EmulatedDriver(executable.get_source("ll"))
    program = DeviceProgram(driver, executable.library.code, executable.graph)
    assert len(driver.memory) == 4
    program.close()
    assert not driver.memory and not driver.handles


def test_graph_is_given_back_too(executable: Executable):
    driver = EmulatedDriver(executable.get_source("ll"))
    on(executable, driver)
    executable.run(np.zeros(executable.inputs[0].shape, np.int8))
    library = executable.library
    assert isinstance(library, DeviceLibrary) and isinstance(library.program, DeviceProgram)
    library.program.close()
    library.program = None
    assert not driver.graphs and not driver.memory


@pytest.mark.parametrize("chip, have", [("sm_90", (8, 0)), ("sm_90a", (10, 0)), ("sm_90a", (8, 9)), ("sm_100", (9, 0))])
def test_device_must_be_new_enough(chip: str, have: tuple[int, int]):
    driver = EmulatedDriver("", have)
    with pytest.raises(Unsupported, match=f"emulator is sm_{have[0]}{have[1]}, and the code is for {chip}; build for"):
        check_device(driver, chip)


@pytest.mark.parametrize("chip, have", [("sm_80", (8, 0)), ("sm_80", (12, 0)), ("sm_90a", (9, 0))])
def test_device_is_new_enough(chip: str, have: tuple[int, int]):
    check_device(EmulatedDriver("", have), chip)


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
    on(loaded, EmulatedDriver(executable.get_source("ll")))
    assert np.array_equal(np.asarray(loaded.run(data["int8_images"][:1])), data["int8_out"][:1])


def test_no_opencl_is_one_clear_error():
    with pytest.raises(Unsupported, match="opencl: libnone.so cannot be loaded; an OpenCL of a GPU"):
        OpenClDriver("libnone.so")
    with pytest.raises(Unsupported, match="opencl: libm.so.6 has no clGetPlatformIDs"):
        OpenClDriver("libm.so.6")


def test_built_again_it_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RELAY_CACHE_DIR", str(tmp_path))
    first, second = (relay.build(DIGITS / "digits_int8.tflite", target="cuda") for _ in range(2))
    assert isinstance(second.library, DeviceLibrary) and second.library.code == first.library.code
    assert second.get_source("ptx") == first.get_source("ptx") == first.library.code.decode()
    with pytest.raises(InvalidArgument, match="the sources are: ll, mlir, ptx"):
        second.get_source("asm")
