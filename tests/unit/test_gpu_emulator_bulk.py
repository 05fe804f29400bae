"""Tiles that the device copies by itself, on the emulator: kernels that are wrong, and maps that are."""

from __future__ import annotations

import re
from collections.abc import Generator
from functools import cache

import numpy as np
import pytest

import relay
from relay.dialects.attributes import Array
from relay.errors import RelayError, Unsupported
from relay.interpreters import run
from relay.lowering.gpu.emulator import Emulator, KernelFault, run_model
from relay.lowering.gpu.emulator.bulk import BulkCopies, Mapped
from relay.lowering.gpu.emulator.faults import Wrong
from relay.lowering.gpu.emulator.machine import aligned
from relay.lowering.gpu.emulator.warp import CONTEXT
from relay.lowering.gpu.tiles import GroupTile
from relay.module import IRModule
from relay.runtime import Executable
from relay.runtime.session import DeviceArray
from relay.target.record import WARP
from tests.numeric.compiled_modules import Net
from tests.numeric.test_gpu_warpgroups import only, windows
from tests.unit.gpu_driver import Foreign, emulated_cuda

TILE = GroupTile(64, 64, 4, 1, 3)
STAGE = 128 * 128


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be one tile, for one group of warps."""
    only(TILE, monkeypatch)


@cache
def model() -> tuple[IRModule, Array, Array]:
    """Six steps of three stages: a product, its data, what the interpreter makes of it."""
    found = Net(11)
    x = found.argument(found.numbers("int8", 70, 704))
    weights = found.constant(found.numbers("int8", 64, 704))
    found.result("product", found.requantize(found.dense(x, weights, (3, 0)), 64, "int8"))
    module = found.module()
    return module, found.inputs[0], run(module, found.inputs)[0]


@cache
def built() -> Executable:
    return relay.build(model()[0], target="cuda -arch=sm_90a")


def emulate(text: str) -> Array:
    executable = built()
    return run_model(executable.graph, Emulator(text), executable.params, [model()[1]])[0]


def places(pattern: str, text: str) -> list[str]:
    """The lines that have this."""
    return [line for line in text.splitlines(keepends=True) if re.search(pattern, line)]


def test_products_are_the_interpreters():
    assert np.array_equal(emulate(built().get_source("ll")), model()[2])


FAULTS = {
    "too many bytes": (f"_, [$0], {STAGE};", f"_, [$0], {STAGE + 16};", f"{STAGE} of {STAGE + 16} bytes came"),
    "too few bytes": (f"_, [$0], {STAGE};", f"_, [$0], {STAGE - 16};", "waits for ever at the barrier at byte 49152"),
    "another thread": ("[$0], 1;", "[$0], 2;", "waits for ever .*: 1 of 2 arrivals"),
    "another phase": ("i32 %PHASE", "i32 1", "which nothing has written"),
    "products not over": ("wait_group.sync.aligned 1;", "wait_group.sync.aligned 2;", "overwritten while products"),
}


@pytest.mark.parametrize("what", FAULTS)
def test_faults_are_seen(what: str):
    old, new, message = FAULTS[what]
    text = built().get_source("ll")
    (wait,) = places("try_wait", text)
    old = old.replace("%PHASE", wait[wait.rindex("%") : -2])
    assert old in text
    with pytest.raises(KernelFault, match=message):
        emulate(text.replace(old, new))


def test_what_is_not_known_is_refused():
    with pytest.raises(Unsupported, match="has { .reg .b64 map, which is not known"):
        Emulator(built().get_source("ll").replace("{$2, $3}", "{$3, $2}"))


LEFT_OUT = {
    "the wait": ("try_wait", "which nothing has written"),
    "arrivals": ("expect_tx", "waits for ever .*: 0 of 1 arrivals and 16384 of 0 bytes"),
    "copies": ("bulk", "waits for ever .*: 1 of 1 arrivals and 0 of 16384 bytes"),
    "barriers": ("mbarrier.init", "there is no barrier at byte 49152"),
    "the fence of barriers": ("fence.proxy.async", "was made without fence.proxy.async"),
    "the fence of maps": ("fence.proxy.tensormap", "without fence.proxy.tensormap"),
}


@pytest.mark.parametrize("what", LEFT_OUT)
def test_what_is_left_out_is_seen(what: str):
    pattern, message = LEFT_OUT[what]
    text = built().get_source("ll")
    lines = places(pattern, text)
    assert lines
    for line in set(lines):
        text = text.replace(line, "")
    with pytest.raises(KernelFault, match=message):
        emulate(text)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [("expect_tx", "the barrier at byte 49152 is armed again before"), ("bulk", "two copies to byte 0 are under way")],
)
def test_what_is_done_twice_is_seen(pattern: str, message: str):
    text = built().get_source("ll")
    line = places(pattern, text)[0]
    with pytest.raises(KernelFault, match=message):
        emulate(text.replace(line, 2 * line, 1))


def test_a_copy_that_nobody_waits_for():
    fields, memory = np.ones(1, CONTEXT), np.zeros((128, 16), np.uint8)
    fields["epoch"] = 0
    mapped = Mapped(aligned(16 * 128), {"dims": [128, 16], "strides": [128], "box": [128, 8], "swizzle": 128})
    copies = BulkCopies(fields, memory, memory.copy(), memory.view(np.int32), memory.nbytes, {64: mapped})
    copies.make(1024, 1, 0)
    copies.acquired.add((0, 64))
    copies.copy([0, 64, 0, 0, 1024], 0)
    with pytest.raises(Wrong, match="the block ends with copies under way"):
        copies.end()


def test_an_arrival_in_the_next_phase_tells_nothing_of_this_one():
    """Two groups free a stage; one reads and arrives again before another warp looks at the barrier."""
    fields, memory = np.zeros(12 * WARP, CONTEXT), np.zeros((128, 16), np.uint8)
    fields["shown"] = 1
    mapped = Mapped(aligned(16 * 128), {"dims": [128, 16], "strides": [128], "box": [128, 8], "swizzle": 128})
    copies = BulkCopies(fields, memory, memory.copy(), memory.view(np.int32), memory.nbytes, {64: mapped})
    copies.make(1024, 8, 0)
    copies.acquired.add((0, 64))
    freed, chunks = copies.known(1024), np.arange(64).reshape(8, 8)
    for group in (4, 8, 4):
        copies.finished(chunks, group * WARP)
        for warp in range(group, group + 4):
            copies.arrive(freed, 1024, warp * WARP)
    assert copies.wait(freed, 1024, 0, 0)
    with pytest.raises(Wrong, match="without a barrier since products read there"):
        copies.copy([0, 64, 0, 0, 1024], 0)


def test_stages_are_not_filled_before_all_have_read_them():
    text = built().get_source("ll")
    last = text.rindex(places("call .*barrier.cta", text)[-1])
    with pytest.raises(KernelFault, match="without a barrier since products read there"):
        emulate(text[:last] + text[last:].split("\n", 1)[1])


@pytest.fixture
def buffers() -> Generator[tuple[list[Array], dict[int, Mapped]]]:
    (row,) = built().graph["device"]["launches"]
    sizes = [size for _, size in Emulator(built().get_source("ll")).translation.kernels[row["kernel"]].parameters]
    first, second = row["maps"]
    maps = {0: Mapped(aligned(70 * 704), first), 1: Mapped(aligned(64 * 768), second)}
    yield [aligned(size) for size in sizes], maps


def launch(given: list[Array], maps: dict[int, Mapped]) -> None:
    (row,) = built().graph["device"]["launches"]
    emulator = Emulator(built().get_source("ll"))
    emulator.launch(row["kernel"], row["grid"][0], row["block"][0], given, row["shared"], maps)


def test_maps_are_checked(buffers: tuple[list[Array], dict[int, Mapped]]):
    given, maps = buffers
    launch(given, maps)
    with pytest.raises(KernelFault, match="no multiple of 64"):
        launch([aligned(256)[16:], *given[1:]], maps)
    with pytest.raises(KernelFault, match="what is no map"):
        launch(given, {1: maps[1]})
    with pytest.raises(KernelFault, match=f"{STAGE - 4096} of {STAGE} bytes came"):
        launch(given, maps | {0: Mapped(maps[0].data, {**maps[0].row, "box": [128, 32]})})
    with pytest.raises(KernelFault, match="rows of 64 bytes"):
        launch(given, maps | {0: Mapped(maps[0].data, {**maps[0].row, "box": [64, 64]})})
    with pytest.raises(KernelFault, match="a map is of 70 rows of 704 bytes, 704 apart; there are 49216"):
        launch(given, maps | {0: Mapped(maps[0].data[:-64], maps[0].row)})


def test_maps_are_encoded_for_where_matrices_lie():
    """Once for each set of addresses; what is on the device is used where it lies, and all is given back."""
    executable = relay.runtime.create(*built())
    _, x, wanted = model()
    with emulated_cuda(built()) as driver:
        for _ in range(3):
            assert np.array_equal(np.asarray(executable.run(x)), wanted)
        assert driver.calls.count("cuTensorMapEncodeTiled") == 2
        found = executable.on(0).run(Foreign(driver, x))
        assert isinstance(found, DeviceArray) and np.array_equal(found.numpy(), wanted)
        assert driver.calls.count("cuTensorMapEncodeTiled") == 4


@pytest.mark.parametrize("channels", [pytest.param(128, marks=pytest.mark.ci), 64])
def test_maps_of_windows_are_encoded(channels: int):
    net = windows("int8", 3, (7, 7, channels), 64)
    module = net.module()
    executable = relay.build(module, target="cuda -arch=sm_90a")
    with emulated_cuda(executable) as driver:
        assert np.array_equal(np.asarray(executable.run(*net.inputs)), run(module, net.inputs)[0])
        assert driver.calls.count("cuTensorMapEncodeIm2col") == 1


def test_a_driver_without_maps_is_one_clear_error():
    executable = relay.runtime.create(*built())
    with emulated_cuda(built()) as driver:
        delattr(driver, "cuTensorMapEncodeTiled")
        with pytest.raises(Unsupported, match="the driver has no cuTensorMapEncodeTiled; install a driver"):
            executable.run(model()[1])


@pytest.mark.parametrize("name", ["cuTensorMapEncodeTiled", "cuLaunchKernel"])
def test_what_is_refused_is_given_back(name: str):
    executable = relay.runtime.create(*built())
    with emulated_cuda(built()) as driver:
        driver.refused = name, 1
        with pytest.raises(RelayError, match=name):
            executable.run(model()[1])
        held = len(driver.memory)
        executable.run(model()[1])
        assert len(driver.memory) == held + 1
