"""NVIDIA's driver without a GPU: the functions of libcuda in Python, called through ctypes as the real ones are, whose
devices are the emulator. What is asked for while something is written down is not done."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relay
from relay.dialects.attributes import Array
from relay.lowering.gpu.emulator import Emulator
from relay.lowering.gpu.emulator.bulk import Mapped
from relay.runtime import cuda_driver
from relay.runtime.cuda_functions import FUNCTIONS, LATER
from relay.runtime.executable import Executable

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
emulated = cache(Emulator)
"""What one driver compiled, others run."""


@cache
def digits() -> Executable:
    """A small model, built once for all tests; those that count what a device keeps make another of it."""
    return relay.build(DIGITS / "digits_int8.tflite", target="cuda")


NAMES = {
    2: b"CUDA_ERROR_OUT_OF_MEMORY",
    1: b"CUDA_ERROR_INVALID_VALUE",
    201: b"CUDA_ERROR_INVALID_CONTEXT",
    218: b"CUDA_ERROR_INVALID_PTX",
}
NOT_READY = 600
CUBIN = b"cubin "
MAP, WINDOWS = b"a map of", b"windows:"


class Refused(Exception):
    """What the driver refuses, by its number."""


@dataclass
class Function:
    """A kernel, and how much shared memory it may ask for."""

    emulator: Emulator
    name: str
    shared: int = 48 << 10


class FakeCuda:
    """`library` for `relay.runtime.cuda_driver.CudaDriver`. `texts`: LLVM IR by PTX. Every call is written to `calls`;
    memory, modules and the rest that is not given back is in `held`. `refused`: a function, and the number of its call
    that has no memory."""

    def __init__(self, capability: tuple[int, int] = (9, 0), devices: int = 2):
        self.capability, self.devices = capability, devices
        self.texts: dict[bytes, str] = {}
        self.contexts: list[int] = []
        self.memory: dict[int, tuple[int, Array]] = {}
        self.held: dict[int, Any] = {}
        self.recording: dict[int, list[Callable[[], object]]] = {}
        self.calls: list[str] = []
        self.fault: Exception | None = None
        self.refused: tuple[str, int] = ("", 0)
        self.last = 0x1000
        self.keep: list[object] = []
        for name, arguments in (FUNCTIONS | LATER).items():
            function = ctypes.CFUNCTYPE(ctypes.c_int, *arguments)(self.wrapped(name))
            self.keep.append(function)
            setattr(self, name, function)

    def wrapped(self, name: str) -> Callable[..., int]:
        """A function of the driver: the method of its name, without the version."""
        method = getattr(self, name.split("_")[0][2:].lower())

        def call(*arguments: Any) -> int:
            self.calls.append(name)
            if (name, self.calls.count(name)) == self.refused:
                return 2
            try:
                method(*arguments)
            except Refused as error:
                return int(error.args[0])
            except Exception as error:
                self.fault = error
                return 719
            return 0

        return call

    def loaded(self, name: str) -> FakeCuda:
        """The library of this name."""
        assert name == cuda_driver.LIBRARY
        return self

    def knows(self, executable: Executable) -> None:
        """Let it run the kernels of a model."""
        self.texts[executable.get_source("ptx").encode()] = executable.get_source("ll")

    def new(self, what: object) -> int:
        """A handle."""
        self.last += 16
        self.held[self.last] = what
        return self.last

    @property
    def context(self) -> int:
        """The device that this thread uses."""
        if not self.contexts:
            raise Refused(201)
        return self.contexts[-1]

    # Devices

    def init(self, flags: int) -> None: ...

    def drivergetversion(self, out: Any) -> None:
        out[0] = 13000

    def devicegetcount(self, out: Any) -> None:
        out[0] = self.devices

    def deviceget(self, out: Any, number: int) -> None:
        out[0] = 70 + number

    def devicegetname(self, text: Any, size: int, device: int) -> None:
        ctypes.memmove(text, b"emulator\0", 9)

    def devicegetattribute(self, out: Any, what: int, device: int) -> None:
        out[0] = {16: 2, 75: self.capability[0], 76: self.capability[1]}[what]

    def deviceprimaryctxretain(self, out: Any, device: int) -> None:
        out[0] = 0x700 + device

    def ctxpushcurrent(self, context: int) -> None:
        self.contexts.append(context)

    def ctxpopcurrent(self, out: Any) -> None:
        out[0] = self.contexts.pop()

    def geterrorname(self, code: int, out: Any) -> None:
        self.tell(out, NAMES.get(code, b"CUDA_ERROR_LAUNCH_FAILED"))

    def geterrorstring(self, code: int, out: Any) -> None:
        self.tell(out, f"{self.fault}".encode() if self.fault else b"refused")

    def tell(self, out: Any, text: bytes) -> None:
        """Give a text that stays."""
        self.keep.append(text)
        out[0] = text

    # Memory

    def memalloc(self, out: Any, size: int) -> None:
        raw = np.full(size + 512, 0xA5, np.uint8)
        start = raw.ctypes.data + -raw.ctypes.data % 256
        self.memory[start] = (self.context, raw[start - raw.ctypes.data :][:size])
        self.keep.append(raw)
        out[0] = start

    def memfree(self, address: int) -> None:
        assert self.context
        del self.memory[address]

    def memallochost(self, out: Any, size: int) -> None:
        raw = ctypes.create_string_buffer(size + 64)
        out[0] = ctypes.addressof(raw)
        self.held[ctypes.addressof(raw)] = raw

    def memfreehost(self, address: int) -> None:
        del self.held[address]

    def rest(self, address: int, size: int = 0) -> Array:
        """The memory of the context's device from an address to the end of what was allocated."""
        for start, (context, raw) in self.memory.items():
            if start <= address <= start + raw.nbytes - size and context == self.context:
                return raw[address - start :]
        raise Refused(1)

    def do(self, stream: int | None, action: Callable[[], object]) -> None:
        """Do something, or write it down."""
        if stream in self.recording:
            self.recording[stream].append(action)
        else:
            assert not stream or stream in self.held or stream < 0x1000, "no stream"
            action()

    def memcpyhtodasync(self, to: int, start: int, size: int, stream: int | None) -> None:
        target = self.rest(to, size)
        assert size
        self.do(stream, lambda: ctypes.memmove(target.ctypes.data, start, size))

    def memcpydtohasync(self, to: int, start: int, size: int, stream: int | None) -> None:
        source = self.rest(start, size)
        assert size
        self.do(stream, lambda: ctypes.memmove(to, source.ctypes.data, size))

    def memcpydtodasync(self, to: int, start: int, size: int, stream: int | None) -> None:
        target, source = self.rest(to, size), self.rest(start, size)
        self.do(stream, lambda: ctypes.memmove(target.ctypes.data, source.ctypes.data, size))

    # Code

    def linkcreate(self, count: int, names: Any, values: Any, out: Any) -> None:
        assert [names[0], names[1]] == [5, 6] and values[1] == 8192
        out[0] = self.new(values[0])

    def linkadddata(self, linker: int, kind: int, data: bytes, size: int, *rest: object) -> None:
        assert kind == 1 and len(data) == size - 1
        if data not in self.texts:
            ctypes.memmove(self.held[linker], b"ptxas fatal: unknown kernels\0", 29)
            raise Refused(218)
        self.held[linker + 1] = ctypes.create_string_buffer(CUBIN + data)

    def linkcomplete(self, linker: int, out: Any, size: Any) -> None:
        found = self.held[linker + 1]
        out[0], size[0] = ctypes.addressof(found), len(found)

    def linkdestroy(self, linker: int) -> None:
        del self.held[linker]
        self.held.pop(linker + 1, None)

    def moduleloaddata(self, out: Any, code: bytes) -> None:
        assert self.context
        if not code.startswith(CUBIN):
            raise Refused(200)
        out[0] = self.new(emulated(self.texts[code.removeprefix(CUBIN)]))

    def moduleunload(self, module: int) -> None:
        emulator = self.held.pop(module)
        for handle in [handle for handle, row in self.held.items() if isinstance(row, Function)]:
            if self.held[handle].emulator is emulator:
                del self.held[handle]

    def modulegetfunction(self, out: Any, module: int, name: bytes) -> None:
        out[0] = self.new(Function(self.held[module], name.decode()))

    def funcsetattribute(self, function: int, what: int, value: int) -> None:
        assert what == 8
        self.held[function].shared = value

    def launchkernel(self, function: int, *rest: Any) -> None:
        gx, gy, gz, bx, by, bz, shared, stream, pointers, extra = rest
        kernel: Function = self.held[function]
        emulator, name = kernel.emulator, kernel.name
        assert (gy, gz, by, bz) == (1, 1, 1, 1) and shared <= kernel.shared and not extra
        count = len(emulator.translation.kernels[name].parameters)
        buffers = [self.rest(ctypes.c_uint64.from_address(pointers[n]).value) for n in range(count)]
        self.do(stream, lambda: emulator.launch(name, gx, bx, buffers, shared, self.maps(buffers)))

    def tensormapencodetiled(self, to: int, kind: int, rank: int, address: int, *rest: Any) -> None:
        dims, strides, box, steps, interleave, swizzle, _, fill = rest
        if to % 64 or address % 16 or strides[0] % 16 or max(box[0], box[1]) > 256 or box[0] > 128:
            raise Refused(1)
        assert (kind, rank, steps[0], steps[1], interleave, swizzle, fill) == (0, 2, 1, 1, 0, 3, 0)
        numbers = [address, dims[0], dims[1], strides[0], box[0], box[1]]
        text = b"".join([MAP, *(int(number).to_bytes(8, "little") for number in numbers)])
        ctypes.memmove(to, text.ljust(128, b"\0"), 128)

    def tensormapencodeim2col(self, to: int, kind: int, rank: int, address: int, *rest: Any) -> None:
        dims, strides, lower, upper, channels, pixels, steps, interleave, swizzle, _, fill = rest
        if to % 64 or address % 16 or any(strides[n] % 16 for n in range(3)) or channels > 256 or pixels > 1024:
            raise Refused(1)
        assert (kind, rank, interleave, fill, steps[0], steps[3]) == (0, 4, 0, 0, 1, 1)
        assert (lower[0], upper[0], steps[1]) == (lower[1], upper[1], steps[2])
        assert channels == {3: 128, 2: 64, 1: 32}[swizzle]
        numbers = [address, *dims[:4], *strides[:3], channels, pixels, lower[0], upper[0], steps[1]]
        text = b"".join([WINDOWS, *(int(number).to_bytes(8, "little", signed=True) for number in numbers)])
        ctypes.memmove(to, text.ljust(128, b"\0"), 128)

    def maps(self, buffers: Sequence[Array]) -> dict[int, Mapped]:
        """Those of a launch's buffers that are maps, with what they are of."""
        found: dict[int, Mapped] = {}
        for number, buffer in enumerate(buffers):
            if buffer[: len(MAP)].tobytes() == MAP:
                address, *more = buffer[len(MAP) : 56].view(np.uint64).tolist()
                row = {"dims": more[:2], "strides": more[2:3], "box": more[3:], "swizzle": 128}
                found[number] = Mapped(self.rest(address), row)
            elif buffer[: len(WINDOWS)].tobytes() == WINDOWS:
                address, *more = buffer[len(WINDOWS) : 112].view(np.int64).tolist()
                row = {
                    "dims": more[:4],
                    "strides": more[4:7],
                    "box": more[7:9],
                    "swizzle": more[7],
                    "corners": more[9:],
                }
                found[number] = Mapped(self.rest(address), row)
        return found

    # Streams, marks and graphs

    def streamcreate(self, out: Any, flags: int) -> None:
        out[0] = self.new("stream")

    def streamdestroy(self, stream: int) -> None:
        assert self.held.pop(stream) == "stream"

    def streamsynchronize(self, stream: int | None) -> None: ...

    def streamwaitevent(self, stream: int | None, event: int, flags: int) -> None:
        assert self.held[event] is not None, "nothing was marked"

    def eventcreate(self, out: Any, flags: int) -> None:
        out[0] = self.new(None)

    def eventdestroy(self, event: int) -> None:
        del self.held[event]

    def eventrecord(self, event: int, stream: int | None) -> None:
        self.held[event] = f"mark of {stream}"

    def eventquery(self, event: int) -> None:
        assert event in self.held

    def eventsynchronize(self, event: int) -> None:
        assert event in self.held

    def eventelapsedtime(self, out: Any, first: int, last: int) -> None:
        assert self.held[first] and self.held[last]
        out[0] = 0.5

    def streambegincapture(self, stream: int, mode: int) -> None:
        self.recording[stream] = []

    def streamendcapture(self, stream: int, out: Any) -> None:
        out[0] = self.new(self.recording.pop(stream))

    def graphinstantiatewithflags(self, out: Any, graph: int, flags: int) -> None:
        out[0] = self.new(self.held[graph])

    def graphdestroy(self, graph: int) -> None:
        del self.held[graph]

    graphexecdestroy = graphdestroy

    def graphlaunch(self, graph: int, stream: int | None) -> None:
        for action in self.held[graph]:
            self.do(stream, action)


@contextmanager
def emulated_cuda(*executables: Executable, **options: Any) -> Generator[FakeCuda]:
    """A driver that runs these models, in the place of NVIDIA's."""
    fake = FakeCuda(**options)
    for executable in executables:
        fake.knows(executable)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda_driver, "load_library", fake.loaded)
        cuda_driver.driver.cache_clear()
        yield fake
    cuda_driver.driver.cache_clear()


class Foreign:
    """An array of another library on the emulated device, by `__cuda_array_interface__`."""

    def __init__(self, driver: FakeCuda, array: Array, context: int = 0x700 + 70, **more: object):
        start = np.zeros(array.nbytes + 512, np.uint8)
        shift = -start.ctypes.data % 256
        self.raw = start[shift:][: array.nbytes]
        self.raw[:] = array.reshape(-1).view(np.uint8)
        driver.memory[self.raw.ctypes.data] = (context, self.raw)
        self.whole = start
        self.row: Mapping[str, object] = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (self.raw.ctypes.data, False),
            "version": 3,
            **more,
        }

    @property
    def __cuda_array_interface__(self) -> Mapping[str, object]:
        return self.row


def copies(calls: Sequence[str]) -> list[str]:
    """The copies between host and device that were asked for, in short."""
    short = {"cuMemcpyHtoDAsync_v2": "up", "cuMemcpyDtoHAsync_v2": "down", "cuMemcpyDtoDAsync_v2": "across"}
    return [short[name] for name in calls if name in short]
