"""NVIDIA's driver by ctypes: the functions that a model needs, and errors with the driver's names."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from contextlib import suppress
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from functools import cache
from typing import Any

from relay.errors import RelayError, Unsupported
from relay.runtime.cuda_functions import FUNCTIONS, LATER
from relay.store import key_of, store

LIBRARY = "libcuda.so.1"
load_library = ctypes.CDLL
Handle = int
"""A handle of the driver, or an address on the device."""

LOG_BYTES = 8192
ERROR_LOG, ERROR_LOG_BYTES = 5, 6
MAJOR, MINOR = 75, 76
"""The driver's numbers of the device attributes for the compute capability."""
PROCESSORS = 16
"""The driver's number of the device attribute for the number of multiprocessors."""
NON_BLOCKING = 1
NO_TIMING = 2
NOT_READY = 600
PTX = 1
DLPACK = 2
"""DLPack's device type code for CUDA."""
MAX_DYNAMIC_SHARED = 8
MAP_BYTES, MAP_ALIGNMENT = 128, 64
"""The size and alignment of a tensor map in bytes."""
BYTES, PROMOTED = 0, 2
"""Settings of a tensor map: elements of 8 bits, and cache lines of 128 bytes."""
SWIZZLES = {128: 3, 64: 2, 32: 1}
"""The driver's codes for swizzling modes, by the number of bytes of a row of a tile."""
SHARED_BYTES = 48 << 10
"""The amount of shared memory in bytes above which a kernel has to request it."""


class CudaError(RelayError):
    """An error that NVIDIA's driver reports."""


class CudaDriver:
    """The driver for one of its devices. Raises Unsupported if there is none, CudaError if a call fails."""

    def __init__(self, library: str = LIBRARY, device: int = 0):
        try:
            self.library: Any = load_library(library)
        except OSError:
            hint = 'a driver of NVIDIA\'s has it; target="llvm" runs on the CPU'
            raise Unsupported("cuda", f"there is no driver: {library} cannot be loaded", hint) from None
        for name, arguments in FUNCTIONS.items():
            self.declare(name, arguments)
        self.call("cuInit", 0)
        count = c_int()
        self.call("cuDeviceGetCount", byref(count))
        if not 0 <= device < count.value:
            raise Unsupported(f"cuda: device {device}", f"is not there; there are {count.value}")
        found = c_int()
        self.call("cuDeviceGet", byref(found), device)
        self.device = found.value
        self.context = self.new("cuDevicePrimaryCtxRetain", self.device)
        self.dlpack = DLPACK

    def declare(self, name: str, arguments: Sequence[Any]) -> None:
        """Look up a function of the driver. Raises Unsupported if it is missing."""
        function = getattr(self.library, name, None)
        if function is None:
            raise Unsupported("cuda", f"the driver has no {name}", "install a driver for CUDA 12 or later")
        function.argtypes, function.restype = arguments, c_int

    def call(self, name: str, *arguments: object) -> None:
        """Call a function. Raises CudaError with the driver's name of the error."""
        code = int(getattr(self.library, name)(*arguments))
        if code:
            raise CudaError(f"cuda: {name}", f"failed: {self.error(code)}")

    def error(self, code: int) -> str:
        """The driver's name of an error."""
        words: list[str] = []
        for function in ("cuGetErrorName", "cuGetErrorString"):
            text = c_char_p()
            getattr(self.library, function)(code, byref(text))
            words.append((text.value or b"").decode(errors="replace"))
        return f"{words[0] or code} ({words[1]})" if words[1] else words[0] or str(code)

    def new(self, name: str, *arguments: object) -> Handle:
        """Call a function, and return the handle that it writes through its first argument."""
        handle = c_void_p()
        self.call(name, byref(handle), *arguments)
        return handle.value or 0

    def __enter__(self) -> None:
        """Make the device current in this thread until `__exit__`, which restores the previous one."""
        self.call("cuCtxPushCurrent_v2", self.context)

    def __exit__(self, *error: object) -> None:
        self.call("cuCtxPopCurrent_v2", byref(c_void_p()))

    @property
    def name(self) -> str:
        """The name of the device."""
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", text, 256, self.device)
        return text.value.decode(errors="replace")

    @property
    def capability(self) -> tuple[int, int]:
        """The device's compute capability: 9, 0 for sm_90."""
        return self.attribute(MAJOR), self.attribute(MINOR)

    def attribute(self, which: int) -> int:
        """The value of a device attribute, by the driver's number."""
        found = c_int()
        self.call("cuDeviceGetAttribute", byref(found), which, self.device)
        return found.value

    # Memory

    def allocate(self, size: int) -> Handle:
        """Allocate memory on the device, aligned to 256 bytes."""
        address = c_uint64()
        self.call("cuMemAlloc_v2", byref(address), max(size, 1))
        return address.value

    def free(self, address: Handle) -> None:
        """Free memory of the device."""
        self.call("cuMemFree_v2", address)

    def allocate_host(self, size: int) -> Handle:
        """Allocate page-locked memory of the host."""
        return self.new("cuMemAllocHost_v2", max(size, 1))

    def free_host(self, address: Handle) -> None:
        """Free page-locked memory."""
        self.call("cuMemFreeHost", address)

    def upload(self, to: Handle, start: int, size: int, stream: Handle) -> None:
        """Copy `size` bytes from host to device, in stream order."""
        if size:
            self.call("cuMemcpyHtoDAsync_v2", to, start, size, stream)

    def copy(self, to: Handle, start: Handle, size: int, stream: Handle) -> None:
        """Copy `size` bytes on the device, in stream order."""
        if size:
            self.call("cuMemcpyDtoDAsync_v2", to, start, size, stream)

    def download(self, to: int, start: Handle, size: int, stream: Handle) -> None:
        """Copy `size` bytes from device to host, in stream order."""
        if size:
            self.call("cuMemcpyDtoHAsync_v2", to, start, size, stream)

    def encode(self, address: Handle, row: Mapping[str, Any]) -> bytes:
        """Encode the CUDA tensor map (`CUtensorMap`) of a matrix of bytes, or of images, at this address of the device.
        `row` has the map's dimensions, strides, box and swizzle, and for images `corners`."""
        name = "cuTensorMapEncodeIm2col" if "corners" in row else "cuTensorMapEncodeTiled"
        self.declare(name, LATER[name])
        raw = ctypes.create_string_buffer(2 * MAP_BYTES)
        start = -ctypes.addressof(raw) % MAP_ALIGNMENT
        rank, box = len(row["dims"]), row["box"]
        dims, strides = (c_uint64 * rank)(*row["dims"]), (c_uint64 * (rank - 1))(*row["strides"])
        given, steps = [(c_uint32 * 2)(*box)], [1] * rank
        if "corners" in row:
            lower, upper, stride = row["corners"]
            steps = [1, stride, stride, 1]
            given = [(c_int * 2)(lower, lower), (c_int * 2)(upper, upper), *box]
        more = [*given, (c_uint32 * rank)(*steps), 0, SWIZZLES[row["swizzle"]], PROMOTED, 0]
        self.call(name, ctypes.addressof(raw) + start, BYTES, rank, address, dims, strides, *more)
        return raw.raw[start : start + MAP_BYTES]

    # Code

    def load(self, code: bytes) -> Handle:
        """Load kernels from PTX; the machine code is cached for each driver and kind of device. Raises CudaError with
        the messages of the driver's compiler."""
        version = c_int()
        self.call("cuDriverGetVersion", byref(version))
        kept, key = store(), key_of("cubin", code, str(version.value), str(self.capability))
        binary = None if kept is None else kept.get(key)
        if binary is not None:
            with suppress(CudaError):  # it may be damaged: it is made again
                return self.new("cuModuleLoadData", binary)
        binary = self.assemble(code)
        module = self.new("cuModuleLoadData", binary)
        if kept is not None:
            kept.put(key, binary)
        return module

    def assemble(self, code: bytes) -> bytes:
        """Compile PTX to machine code for this device."""
        log = ctypes.create_string_buffer(LOG_BYTES)
        names = (c_int * 2)(ERROR_LOG, ERROR_LOG_BYTES)
        values = (c_void_p * 2)(ctypes.addressof(log), LOG_BYTES)
        linker = self.new_last("cuLinkCreate_v2", 2, names, values)
        found, size = c_void_p(), c_size_t()
        try:
            self.call("cuLinkAddData_v2", linker, PTX, code + b"\0", len(code) + 1, b"kernels", 0, None, None)
            self.call("cuLinkComplete", linker, byref(found), byref(size))
            return ctypes.string_at(found, size.value)
        except CudaError as error:
            said = log.value.decode(errors="replace").strip().splitlines()
            raise CudaError(error.where, "; ".join([error.what, *said[:3]])) from None
        finally:
            self.call("cuLinkDestroy", linker)

    def unload(self, module: Handle) -> None:
        """Unload a module of kernels."""
        self.call("cuModuleUnload", module)

    def function(self, module: Handle, name: str, shared: int) -> Handle:
        """Look up a kernel by name, and give it `shared` bytes of shared memory."""
        found = self.new("cuModuleGetFunction", module, name.encode())
        if shared > SHARED_BYTES:
            self.call("cuFuncSetAttribute", found, MAX_DYNAMIC_SHARED, shared)
        return found

    def launch(
        self,
        function: Handle,
        grid: Sequence[int],
        block: Sequence[int],
        shared: int,
        stream: Handle,
        buffers: Sequence[Handle],
    ) -> None:
        """Launch a kernel with these buffers, in stream order."""
        values = (c_uint64 * max(len(buffers), 1))(*buffers)
        start = ctypes.addressof(values)
        pointers = (c_void_p * max(len(buffers), 1))(*(start + 8 * number for number in range(len(buffers))))
        self.call("cuLaunchKernel", function, *grid, *block, shared, stream, pointers, None)

    # Streams and graphs

    def stream(self) -> Handle:
        """Create a stream."""
        return self.new("cuStreamCreate", NON_BLOCKING)

    def free_stream(self, stream: Handle) -> None:
        """Destroy a stream."""
        self.call("cuStreamDestroy_v2", stream)

    def wait(self, stream: Handle) -> None:
        """Wait until all work in the stream is done."""
        self.call("cuStreamSynchronize", stream)

    def event(self, timing: bool = False) -> Handle:
        """Create an event; with `timing`, `elapsed` measures between two of them."""
        return self.new("cuEventCreate", 0 if timing else NO_TIMING)

    def free_event(self, event: Handle) -> None:
        """Destroy an event."""
        self.call("cuEventDestroy_v2", event)

    def record(self, event: Handle, stream: Handle) -> None:
        """Record an event in a stream."""
        self.call("cuEventRecord", event, stream)

    def reached(self, event: Handle) -> bool:
        """Whether the work submitted before the event is complete."""
        code = int(self.library.cuEventQuery(event))
        if code not in (0, NOT_READY):
            raise CudaError("cuda: cuEventQuery", f"failed: {self.error(code)}")
        return not code

    def wait_event(self, event: Handle) -> None:
        """Wait for an event."""
        self.call("cuEventSynchronize", event)

    def elapsed(self, first: Handle, last: Handle) -> float:
        """The milliseconds between two events."""
        found = c_float()
        self.call("cuEventElapsedTime", byref(found), first, last)
        return found.value

    def follow(self, stream: Handle, other: Handle) -> None:
        """Make a stream wait for the work submitted to another one so far."""
        if stream != other:
            event = self.event()
            try:
                self.record(event, other)
                self.call("cuStreamWaitEvent", stream, event, 0)
            finally:
                self.free_event(event)

    def begin(self, stream: Handle) -> None:
        """Start capturing this thread's calls in the stream as a graph."""
        self.call("cuStreamBeginCapture_v2", stream, 1)

    def end(self, stream: Handle) -> Handle:
        """End capturing, and return the graph."""
        graph = self.new_last("cuStreamEndCapture", stream)
        try:
            return self.new("cuGraphInstantiateWithFlags", graph, 0)
        finally:
            self.call("cuGraphDestroy", graph)

    def new_last(self, name: str, *arguments: object) -> Handle:
        """Call a function, and return the handle that it writes through its last argument."""
        handle = c_void_p()
        self.call(name, *arguments, byref(handle))
        return handle.value or 0

    def replay(self, graph: Handle, stream: Handle) -> None:
        """Launch a captured graph."""
        self.call("cuGraphLaunch", graph, stream)

    def free_graph(self, graph: Handle) -> None:
        """Destroy a graph."""
        self.call("cuGraphExecDestroy", graph)


@cache
def driver(device: int) -> CudaDriver:
    """The driver of a device; cached."""
    return CudaDriver(device=device)


def check_device(driver: CudaDriver, chip: str) -> None:
    """Raise Unsupported for a device that cannot run code for this chip: `sm_80` code runs on all later ones, `sm_90a`
    code only on its own."""
    number = chip.removeprefix("sm_").rstrip("af")
    needed = (int(number[:-1]), int(number[-1]))
    found = driver.capability
    if found < needed or (chip.endswith("a") and found != needed):
        have = f"sm_{found[0]}{found[1]}"
        raise Unsupported(
            "cuda", f"{driver.name} is {have}, and the code is for {chip}", f'build for "cuda -arch={have}"'
        )
