"""Inputs and outputs that stay on a device: arrays of other libraries, streams, several devices; and arrays of other
libraries for a CPU. Devices are the emulator."""

from __future__ import annotations

import gc
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

import relay
from relay.dialects.attributes import Array
from relay.errors import InvalidArgument, Unsupported
from relay.runtime import Executable, dlpack
from relay.runtime.session import DeviceArray, Session
from tests.unit.gpu_driver import DIGITS, FakeCuda, Foreign, copies, digits, emulated_cuda

DATA = np.load(DIGITS / "digits_test.npz")
IMAGES: list[Array] = [image[None] for image in DATA["int8_images"][:4]]
WANTED: list[Array] = [row[None] for row in DATA["int8_out"][:4]]


@pytest.fixture(scope="module")
def on_cpu() -> Executable:
    return relay.build(DIGITS / "digits_int8.tflite")


@pytest.fixture
def executable() -> Executable:
    """One that no device knows yet."""
    return relay.runtime.create(*digits())


@pytest.fixture
def driver() -> Generator[FakeCuda]:
    with emulated_cuda(digits()) as fake:
        yield fake


def one(found: DeviceArray | Array | tuple[Any, ...] | None) -> Any:
    assert found is not None and not isinstance(found, tuple)
    return found


def test_outputs_stay_on_the_device(executable: Executable, driver: FakeCuda):
    session = executable.on()
    result = one(session.run(IMAGES[0]))
    assert copies(driver.calls) == ["up", "up"] and "cuStreamSynchronize" not in driver.calls[-3:]
    assert (result.shape, result.dtype, result.nbytes) == ((1, 10), np.int8, 10)
    session.synchronize()
    assert np.array_equal(result.numpy(), WANTED[0]) and np.array_equal(np.asarray(result), WANTED[0])
    assert repr(result) == "DeviceArray(int8[1, 10] on device 0)"


def test_outputs_have_memory_of_their_own_while_somebody_has_them(executable: Executable, driver: FakeCuda):
    session = executable.on()
    results = [one(session.run(image)) for image in IMAGES]
    assert all(map(np.array_equal, map(np.asarray, results), WANTED))
    assert len({result.address for result in results}) == len(IMAGES)
    del results
    blocks = len(driver.memory)
    for image in IMAGES:
        session.run(image)
    assert len(driver.memory) == blocks


def test_graphs_of_an_address_are_kept(executable: Executable, driver: FakeCuda):
    session, image = executable.on(), Foreign(driver, IMAGES[0])
    for _ in range(4):
        assert np.array_equal(one(session.run(image)), WANTED[0])
    assert driver.calls.count("cuGraphInstantiateWithFlags") == 1
    assert copies(driver.calls) == ["up", *["down"] * 4]  # the constants, and results to compare
    images = [Foreign(driver, IMAGES[0]) for _ in range(20)]
    for each in images:
        session.run(each)
    session.synchronize()
    assert sum(isinstance(what, list) for what in driver.held.values()) == 8


def test_arrays_on_the_device_never_go_through_the_host(executable: Executable, driver: FakeCuda):
    session = executable.on()
    session.synchronize()
    driver.calls.clear()
    assert np.array_equal(one(session.run(Foreign(driver, IMAGES[1]))), WANTED[1])
    assert copies(driver.calls) == ["down"]  # of the output, to compare it
    shifted = np.concatenate([np.zeros(3, np.int8), IMAGES[1].reshape(-1)])
    whole = Foreign(driver, shifted)
    row = {**whole.row, "shape": IMAGES[1].shape, "data": (whole.raw.ctypes.data + 3, False)}
    odd = Foreign(driver, shifted)
    odd.row = row
    driver.calls.clear()
    assert np.array_equal(one(session.run(odd)), WANTED[1]) and copies(driver.calls) == ["across", "down"]
    driver.calls.clear()
    assert np.array_equal(one(executable.run(Foreign(driver, IMAGES[2]))), WANTED[2])
    assert copies(driver.calls) == ["down"]


def test_outputs_are_inputs_of_another_model(driver: FakeCuda):
    text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %r = relay.add %x, %x : (tensor<4xf32>, "
    text += "tensor<4xf32>) -> tensor<4xf32>\n  func.return %r : tensor<4xf32>\n}"
    double = relay.build(relay.IRModule.parse(text), target="cuda")
    driver.knows(double)
    first, second = double.on(), double.on(stream=0x700)
    x = np.arange(4, dtype=np.float32)
    y = one(second.run(first.run(x)))
    assert np.array_equal(y.numpy(), 4 * x) and "cuStreamWaitEvent" in driver.calls


@pytest.mark.slow
def test_a_batch_is_so_many_runs(driver: FakeCuda):
    executable = relay.build(DIGITS / "digits_int8.tflite", target="cuda", frontend={"batch": 3})
    driver.knows(executable)
    assert np.array_equal(one(executable.run(np.concatenate(IMAGES[:3]))), np.concatenate(WANTED[:3]))


def test_dlpack_gives_the_memory_itself(executable: Executable, driver: FakeCuda):
    session = executable.on()
    result = one(session.run(IMAGES[0]))
    assert result.__dlpack_device__() == (dlpack.CUDA, 0)
    assert isinstance(session, Session)
    session.driver.dlpack = dlpack.CPU  # the emulator's memory is the host's
    array = np.from_dlpack(result)
    assert array.ctypes.data == result.address and np.array_equal(array, WANTED[0])
    address = result.address
    del result
    assert one(session.run(IMAGES[1])).address != address and np.array_equal(array, WANTED[0])
    del array
    gc.collect()
    assert one(session.run(IMAGES[1])).address == address
    session.driver.dlpack = dlpack.CUDA
    assert not dlpack.EXPORTED


def test_a_capsule_that_nobody_takes_is_given_back(executable: Executable, driver: FakeCuda):
    result = one(executable.on().run(IMAGES[0]))
    capsule = result.__dlpack__(stream=2)
    assert len(dlpack.EXPORTED) == 1 and driver.calls.count("cuStreamWaitEvent") == 1
    view = dlpack.of_capsule(capsule, "x")
    assert (view.address, view.shape, view.dtype) == (result.address, (1, 10), np.int8)
    del capsule, view
    assert not dlpack.EXPORTED
    with pytest.raises(BufferError, match=r"numpy\(\) copies it to the host"):
        result.__dlpack__(dl_device=(1, 0))


def test_what_other_libraries_read_of_it(executable: Executable, driver: FakeCuda):
    result = one(executable.on().run(IMAGES[0]))
    row = result.__cuda_array_interface__
    assert row["data"] == (result.address, False) and row["typestr"] == "|i1" and row["stream"] == result.session.stream


class Stream:
    """A stream of another library's."""

    def __init__(self, handle: int):
        self.cuda_stream = handle


class Protocol:
    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 0x540


def test_streams_of_the_caller(executable: Executable, driver: FakeCuda):
    assert [executable.on(stream=s).stream for s in (0, 0x520, Stream(0x530), Protocol())] == [0, 0x520, 0x530, 0x540]
    session = executable.on(stream=Stream(0x520))
    assert np.array_equal(one(session.run(IMAGES[0])), WANTED[0])
    waits = Foreign(driver, IMAGES[1], stream=0x99)
    driver.calls.clear()
    session.run(waits)
    assert driver.calls.count("cuStreamWaitEvent") == 1
    with pytest.raises(InvalidArgument, match="stream: str is none; give a handle"):
        executable.on(stream="0")


def test_several_devices(executable: Executable, driver: FakeCuda):
    sessions = [executable.on(device) for device in (0, 1)]
    for image, want in zip(IMAGES, WANTED, strict=True):
        assert all(np.array_equal(one(session(image)), want) for session in sessions)
    assert not driver.contexts and {context for context, _ in driver.memory.values()} == {0x700 + 70, 0x700 + 71}
    with pytest.raises(Unsupported, match="cuda: device 2: is not there; there are 2"):
        executable.on(2)


def test_arrays_that_are_not_taken(executable: Executable, on_cpu: Executable, driver: FakeCuda):
    session = executable.on()
    name = executable.inputs[0].name
    with pytest.raises(InvalidArgument, match=f"input '{name}': has dtype float32"):
        session.run(Foreign(driver, IMAGES[0].astype(np.float32)))
    with pytest.raises(InvalidArgument, match="has shape"):
        session.run(Foreign(driver, IMAGES[0][0]))
    with pytest.raises(InvalidArgument, match="has gaps, or rows in another order; make it contiguous"):
        session.run(Foreign(driver, IMAGES[0], strides=(1, 1, 8, 1)))
    other = one(executable.on(1).run(IMAGES[0]))
    with pytest.raises(InvalidArgument, match=r"lies on device 1 \(DLPack's kind 2\); the model runs on 0"):
        session.run(other)
    with pytest.raises(InvalidArgument, match=r"lies on a device \(DLPack's kind 2\); copy it to the host"):
        on_cpu.run(other)


class OnlyDlpack:
    """An array on the host that is no more than DLPack says."""

    def __init__(self, array: Array):
        self.array = array

    def __dlpack__(self, **options: Any) -> object:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_a_cpu_takes_arrays_of_other_libraries_too(on_cpu: Executable):
    session = on_cpu.on()
    for run in (on_cpu.run, session.run, session):
        result = one(run(OnlyDlpack(IMAGES[0].copy())))
        assert np.array_equal(np.from_dlpack(result), WANTED[0])
    session.synchronize()
    with pytest.raises(InvalidArgument, match="built for a CPU, which has no devices"):
        on_cpu.on(1)
