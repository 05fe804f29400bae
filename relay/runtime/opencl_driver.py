"""OpenCL, by ctypes: the first device that accepts SPIR-V and shares virtual memory with the host. Devices are those of
the system's loader; without any, the CPU is the device, through Intel's runtime from PyPI."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from functools import cache
from itertools import count
from typing import Any

from relay.errors import RelayError, Unsupported
from relay.plug_ins import installation

LIBRARY = "libOpenCL.so.1"
PACKAGE, PACKAGED = "intel-opencl-rt", "libintelocl.so"
"""The PyPI package that makes the processor an OpenCL device, and its library, which works without a loader."""
DEVICE = "RELAY_OPENCL_DEVICE"
"""The environment variable that selects a device by a part of its name."""

FUNCTIONS: dict[str, tuple[object, list[object]]] = {
    "clGetPlatformIDs": (c_int, [c_uint, POINTER(c_void_p), POINTER(c_uint)]),
    "clGetDeviceIDs": (c_int, [c_void_p, c_uint64, c_uint, POINTER(c_void_p), POINTER(c_uint)]),
    "clGetDeviceInfo": (c_int, [c_void_p, c_uint, c_size_t, c_void_p, POINTER(c_size_t)]),
    "clCreateContext": (c_void_p, [c_void_p, c_uint, POINTER(c_void_p), c_void_p, c_void_p, POINTER(c_int)]),
    "clCreateCommandQueueWithProperties": (c_void_p, [c_void_p, c_void_p, c_void_p, POINTER(c_int)]),
    "clCreateProgramWithIL": (c_void_p, [c_void_p, c_char_p, c_size_t, POINTER(c_int)]),
    "clBuildProgram": (c_int, [c_void_p, c_uint, POINTER(c_void_p), c_char_p, c_void_p, c_void_p]),
    "clGetProgramBuildInfo": (c_int, [c_void_p, c_void_p, c_uint, c_size_t, c_void_p, POINTER(c_size_t)]),
    "clCreateKernel": (c_void_p, [c_void_p, c_char_p, POINTER(c_int)]),
    "clSetKernelArg": (c_int, [c_void_p, c_uint, c_size_t, c_void_p]),
    "clSetKernelArgSVMPointer": (c_int, [c_void_p, c_uint, c_void_p]),
    "clEnqueueNDRangeKernel": (
        c_int,
        [c_void_p, c_void_p, c_uint, c_void_p, POINTER(c_size_t), POINTER(c_size_t), c_uint, c_void_p, c_void_p],
    ),
    "clSVMAlloc": (c_void_p, [c_void_p, c_uint64, c_size_t, c_uint]),
    "clSVMFree": (None, [c_void_p, c_void_p]),
    "clEnqueueSVMMemcpy": (c_int, [c_void_p, c_uint, c_void_p, c_void_p, c_size_t, c_uint, c_void_p, c_void_p]),
    "clFinish": (c_int, [c_void_p]),
    "clReleaseKernel": (c_int, [c_void_p]),
    "clReleaseProgram": (c_int, [c_void_p]),
    "clReleaseCommandQueue": (c_int, [c_void_p]),
    "clReleaseContext": (c_int, [c_void_p]),
}
"""The OpenCL functions that relay calls, with their result and argument types. Source: OpenCL 2.1, cl.h."""

ALL_DEVICES = 0xFFFFFFFF
NAME, IL_VERSION, SVM, EXTENSIONS = 0x102B, 0x105B, 0x1053, 0x1030
NEEDED = {b"SPV_KHR_integer_dot_product": b"cl_khr_integer_dot_product"}
"""OpenCL extensions that a device needs, by SPIR-V extension."""
COARSE = 1
BUILD_LOG = 0x1183
READ_WRITE = 1
ALIGNMENT = 256
DLPACK = 0
"""DLPack's device type code: 0, because it has none for shared virtual memory."""


class OpenClError(RelayError):
    """An error that OpenCL reports."""


class OpenClDriver:
    """OpenCL on one device. Raises Unsupported if there is none, OpenClError if a call fails."""

    def __init__(self, library: str = LIBRARY, device: int = 0):
        try:
            self.library = ctypes.CDLL(library)
        except OSError as error:
            raise Unsupported("opencl", f"{library} cannot be loaded ({error})", hint()) from None
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(self.library, name, None)
            if function is None:
                raise Unsupported("opencl", f"{library} has no {name}", "OpenCL 2.1 or later is needed")
            function.argtypes, function.restype = arguments, result
        self.device = self.choose(device)
        self.context = self.create("clCreateContext", None, 1, byref(c_void_p(self.device)), None, None)
        self.dlpack = DLPACK
        self.kernels: dict[int, list[int]] = {}
        self.staging: dict[int, object] = {}
        self.recording: list[Callable[[], None]] | None = None
        self.graphs: dict[int, list[Callable[[], None]]] = {}
        self.numbers = count(1)

    def choose(self, number: int) -> int:
        """The device with this number among those that accept SPIR-V, have shared memory, and match the user's
        selection."""
        wanted, seen = os.environ.get(DEVICE, ""), list[str]()
        found: list[int] = []
        for device in self.devices():
            name = self.info(device, NAME).decode(errors="replace").rstrip("\0")
            seen.append(name)
            versions, svm = self.info(device, IL_VERSION), self.info(device, SVM)
            if wanted in name and b"SPIR-V" in versions and svm and svm[0] & COARSE:
                found.append(device)
        if 0 <= number < len(found):
            return found[number]
        if found:
            raise Unsupported(f"opencl: device {number}", f"is not there; there are {len(found)}")
        if wanted and not any(wanted in name for name in seen):
            raise Unsupported("opencl", f"no device is called {wanted!r}", f"{DEVICE} says so; there are {seen}")
        what = f"none of {', '.join(seen)} takes SPIR-V" if seen else "there are no devices"
        raise Unsupported("opencl", what, hint())

    def devices(self) -> Iterator[int]:
        """All devices of all platforms."""
        for platform in self.listed("clGetPlatformIDs"):
            yield from self.listed("clGetDeviceIDs", platform, ALL_DEVICES)

    def listed(self, name: str, *arguments: object) -> list[int]:
        """The results of a listing function; empty if it fails, as it does when there is nothing to list."""
        function, count = getattr(self.library, name), c_uint()
        if function(*arguments, 0, None, byref(count)) or not count.value:
            return []
        found = (c_void_p * count.value)()
        self.call(name, *arguments, count.value, found, None)
        return [each for each in found if each]

    def info(self, device: int, what: int) -> bytes:
        """A property of a device; empty if it lacks the property."""
        size = c_size_t()
        if self.library.clGetDeviceInfo(device, what, 0, None, byref(size)) or not size.value:
            return b""
        text = ctypes.create_string_buffer(size.value)
        self.call("clGetDeviceInfo", device, what, size.value, text, None)
        return text.raw

    def call(self, name: str, *arguments: object) -> None:
        """Call a function. Raises OpenClError with the error number."""
        code = int(getattr(self.library, name)(*arguments))
        if code:
            raise OpenClError(f"opencl: {name}", f"failed with {code}")

    def create(self, name: str, *arguments: object) -> int:
        """Call a function that creates an object and reports errors by its last argument."""
        code = c_int()
        found = getattr(self.library, name)(*arguments, byref(code))
        if code.value or not found:
            raise OpenClError(f"opencl: {name}", f"failed with {code.value}")
        return int(found)

    def __enter__(self) -> None:
        """Does nothing: every thread may use the device."""

    def __exit__(self, *error: object) -> None: ...

    # Memory

    def allocate(self, size: int) -> int:
        """Allocate memory of the device, aligned to 256 bytes if possible."""
        found = self.library.clSVMAlloc(self.context, READ_WRITE, max(size, 1), ALIGNMENT)
        found = found or self.library.clSVMAlloc(self.context, READ_WRITE, max(size, 1), 0)
        if not found:
            raise OpenClError("opencl: clSVMAlloc", f"has no {size} bytes")
        return int(found)

    def free(self, address: int) -> None:
        """Free memory of the device."""
        self.library.clSVMFree(self.context, address)

    def allocate_host(self, size: int) -> int:
        """Allocate `size` bytes of ordinary memory of the host, and return the address; `self.staging` keeps it
        alive."""
        buffer = ctypes.create_string_buffer(max(size, 1))
        address = ctypes.addressof(buffer)
        self.staging[address] = buffer
        return address

    def free_host(self, address: int) -> None:
        """Free memory of the host."""
        del self.staging[address]

    def do(self, action: Callable[[], None]) -> None:
        """Execute a command, or record it while recording."""
        if self.recording is None:
            action()
        else:
            self.recording.append(action)

    def upload(self, to: int, start: int, size: int, stream: int) -> None:
        """Copy `size` bytes from address `start` to address `to`, in the queue's order. Both may be on the host or on
        the device: the memory is shared."""
        self.do(lambda: self.call("clEnqueueSVMMemcpy", stream, 0, to, start, size, 0, None, None) if size else None)

    copy = download = upload

    # Code

    def encode(self, address: int, row: Mapping[str, Any]) -> bytes:
        """Raise Unsupported: OpenCL has no tensor maps."""
        raise Unsupported("opencl", "has no copies of tiles")

    def load(self, code: bytes) -> int:
        """Build kernels from SPIR-V. Raises Unsupported for an extension that the device lacks, OpenClError with the
        messages of its compiler."""
        offered = self.info(self.device, EXTENSIONS).rstrip(b"\0").split()
        for extension, needed in NEEDED.items():
            if extension in code and needed not in offered:
                name = self.info(self.device, NAME).decode(errors="replace").rstrip("\0")
                raise Unsupported(f"opencl: {name}", f"has no {needed.decode()}", 'build for target="opencl"')
        program = self.create("clCreateProgramWithIL", self.context, code, len(code))
        device = c_void_p(self.device)
        failed = self.library.clBuildProgram(program, 1, byref(device), b"", None, None)
        if failed:
            size = c_size_t()
            self.library.clGetProgramBuildInfo(program, self.device, BUILD_LOG, 0, None, byref(size))
            log = ctypes.create_string_buffer(size.value + 1)
            self.library.clGetProgramBuildInfo(program, self.device, BUILD_LOG, size.value, log, None)
            said = log.value.decode(errors="replace").strip().splitlines()
            raise OpenClError("opencl: clBuildProgram", f"failed with {failed}: {'; '.join(said[:3])}")
        return program

    def unload(self, module: int) -> None:
        """Release a program and its kernels."""
        for kernel in self.kernels.pop(module, ()):
            self.call("clReleaseKernel", kernel)
        self.call("clReleaseProgram", module)

    def function(self, module: int, name: str, shared: int) -> int:
        """Create a kernel by its name."""
        kernel = self.create("clCreateKernel", module, name.encode())
        self.kernels.setdefault(module, []).append(kernel)
        return kernel

    def launch(
        self,
        function: int,
        grid: Sequence[int],
        block: Sequence[int],
        shared: int,
        stream: int,
        buffers: Sequence[int],
    ) -> None:
        """Launch a kernel on these buffers, in the queue's order."""
        whole = (c_size_t * 3)(*(blocks * threads for blocks, threads in zip(grid, block, strict=True)))
        part = (c_size_t * 3)(*block)

        def action() -> None:
            for number, buffer in enumerate(buffers):
                self.call("clSetKernelArgSVMPointer", function, number, buffer)
            if shared:
                self.call("clSetKernelArg", function, len(buffers), shared, None)
            self.call("clEnqueueNDRangeKernel", stream, function, 3, None, whole, part, 0, None, None)

        self.do(action)

    # Queues, and lists of what is done in them

    def stream(self) -> int:
        """Create an in-order queue."""
        return self.create("clCreateCommandQueueWithProperties", self.context, self.device, None)

    def free_stream(self, stream: int) -> None:
        """Release a queue."""
        self.call("clReleaseCommandQueue", stream)

    def wait(self, stream: int) -> None:
        """Wait until all commands in the queue are done."""
        self.call("clFinish", stream)

    def event(self, timing: bool = False) -> int:
        """Return 0: there are no events, every wait is for the whole queue."""
        return 0

    def free_event(self, event: int) -> None:
        """Does nothing: there are no events."""

    def record(self, event: int, stream: int) -> None:
        """Wait until all commands submitted so far are done."""
        self.wait(stream)

    def reached(self, event: int) -> bool:
        """Return True: the work before an event is always complete, because `record` waits for it."""
        return True

    def wait_event(self, event: int) -> None:
        """Does nothing: `record` has waited."""

    def follow(self, stream: int, other: int) -> None:
        """Wait until the other queue is empty."""
        if stream != other:
            self.wait(other)

    def begin(self, stream: int) -> None:
        """Start recording commands instead of executing them."""
        self.recording = []

    def end(self, stream: int) -> int:
        """Stop recording, and return the handle of the recorded commands."""
        number = next(self.numbers)
        self.graphs[number], self.recording = self.recording or [], None
        return number

    def replay(self, graph: int, stream: int) -> None:
        """Execute recorded commands."""
        for action in self.graphs[graph]:
            action()

    def free_graph(self, graph: int) -> None:
        """Drop recorded commands."""
        del self.graphs[graph]


def hint() -> str:
    """The hint in errors about a missing OpenCL device: how to install a runtime that runs kernels on the CPU."""
    return f"{installation('opencl')} brings Intel's runtime, by which x86-64 processors are devices"


def packaged() -> str | None:
    """Intel's library among this Python's packages, or None."""
    from importlib.metadata import PackageNotFoundError, files  # here: few executables run on OpenCL

    try:
        found = [file.locate() for file in files(PACKAGE) or () if file.name == PACKAGED]
    except PackageNotFoundError:
        return None
    return str(found[0]) if found else None


@cache
def driver(device: int) -> OpenClDriver:
    """OpenCL on a device; cached. Raises the loader's Unsupported if no library has a device."""
    try:
        return OpenClDriver(LIBRARY, device)
    except Unsupported:
        library = packaged()
        if library is None:
            raise
        return OpenClDriver(library, device)
