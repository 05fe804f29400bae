"""`Executable.on`: runs on a chosen device, in a chosen stream, with outputs that stay there."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from ctypes import memmove
from math import prod
from typing import TYPE_CHECKING, Any
from weakref import finalize

import numpy as np
import numpy.typing as npt

from relay.errors import InvalidArgument
from relay.runtime.device_program import Binding, Model, Program
from relay.runtime.dlpack import CUDA, LEGACY_STREAM, Given, View, capsule_of, device_of, view_of
from relay.runtime.memory import Array, address
from relay.runtime.specification import TensorSpec

if TYPE_CHECKING:
    from relay.runtime.device_program import Driver

ALIGNMENT = 64
"""The alignment that kernels need; inputs at other addresses are copied, on the device."""


class Session:
    """A model's runs on one device, in one stream: each starts after the previous one, and returns before it is
    complete.

    Calls from several threads are serialized. An input on the device is used in place, or copied there; it must not
    change until the run is complete, except by later work in the same stream.
    """

    def __init__(
        self,
        driver: Driver,
        model: Model,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        device: int,
        stream: object,
        arrange: Callable[[tuple[Any, ...], Mapping[str, Any]], list[Any]],
    ):
        self.driver, self.inputs, self.outputs, self.device = driver, inputs, outputs, device
        self.program = Program(model, None if stream is None else handle_of(stream))
        self.arrange = arrange
        self.binding = Binding((), ())
        self.lock = threading.Lock()
        self.pool = Pool(driver, model.total - model.given)
        self.pending: deque[tuple[int, list[View]]] = deque()
        with driver:
            self.staged = driver.event()
        self.close = finalize(self, give_back, driver, self.staged, self.pending, self.pool.all)

    @property
    def stream(self) -> int:
        """The driver's handle of the stream."""
        return self.program.stream

    def run(self, /, *inputs: Given, **named: Given) -> DeviceArray | tuple[DeviceArray, ...]:
        """Start a run; inputs are as for `Executable.run`, each on the host or on the device."""
        found = self.begin(self.arrange(inputs, named))
        return found[0] if len(found) == 1 else tuple(found)

    __call__ = run

    def begin(self, values: Sequence[Any]) -> list[DeviceArray]:
        """Start a run with all inputs in order, including states."""
        place, offsets = (self.driver.dlpack, self.device), self.program.model.offsets
        with self.lock, self.driver:
            self._forget()
            views = [self._view(spec, value, place) for spec, value in zip(self.inputs, values, strict=True)]
            if not all(views):
                self.driver.wait_event(self.staged)
            addresses: list[int] = []
            sizes = self.program.model.sizes
            for spec, value, view, offset, size in zip(self.inputs, values, views, offsets, sizes, strict=False):
                if view is None:
                    array = spec.take(value)
                    memmove(self.program.staging + offset, address(array), array.nbytes)
                    addresses.append(0)
                elif view.address % ALIGNMENT:
                    addresses.append(self.program.tensors + offset)
                    self.driver.copy(addresses[-1], view.address, size, self.stream)
                else:
                    addresses.append(view.address)
            block = self.pool.take(self.stream)
            start = block.address - self.program.model.given
            results = [start + offset for offset in offsets[len(self.inputs) :]]
            self.binding = Binding(tuple(addresses), tuple(results))
            self.program.start(self.binding)
            if not all(views):
                self.driver.record(self.staged, self.stream)
            if kept := [view for view in views if view is not None]:
                event = self.driver.event()
                self.driver.record(event, self.stream)
                self.pending.append((event, kept))
        return [
            DeviceArray(self, block, result, spec.shape, spec.dtype)
            for spec, result in zip(self.outputs, results, strict=True)
        ]

    def _view(self, spec: TensorSpec, value: object, place: tuple[int, int]) -> View | None:
        """A view of the value if it is on the device, after making the stream wait for it; None if it is on the
        host."""
        if device_of(value) is None:
            return None
        where = f"input '{spec.name}'"
        view, stream = view_of(value, place, self.stream, where)
        if stream is not None:
            self.driver.follow(self.stream, 0 if stream == LEGACY_STREAM else stream)
        spec.check(view.shape, view.dtype)
        return view if view.address else None

    def _forget(self) -> None:
        """Release inputs whose runs are complete."""
        while self.pending and self.driver.reached(self.pending[0][0]):
            self.driver.free_event(self.pending.popleft()[0])

    def synchronize(self) -> None:
        """Wait until all runs are complete."""
        with self.lock, self.driver:
            self.driver.wait(self.stream)
            self._forget()


def give_back(driver: Driver, event: int, pending: deque[tuple[int, list[View]]], blocks: list[int]) -> None:
    """Free what a session holds on the device: the memory `blocks` of outputs that are no longer referenced, `event`,
    and the events of `pending`, each of which is waited for first, so that the arrays kept with it stay alive until the
    work before it is done."""
    with driver:
        for block in blocks:
            driver.free(block)
        driver.free_event(event)
        for mark, _ in pending:
            driver.wait_event(mark)
            driver.free_event(mark)


def handle_of(stream: Any) -> int:
    """The driver's handle of a stream: an integer, or an object with `__cuda_stream__`, `cuda_stream` or `ptr`."""
    found: object = stream
    if hasattr(stream, "__cuda_stream__"):
        found = stream.__cuda_stream__()[1]
    for name in ("cuda_stream", "ptr"):
        found = found if isinstance(found, int) else getattr(stream, name, None)
    if not isinstance(found, int) or isinstance(found, bool):
        hint = "give a handle, or an object with __cuda_stream__ or cuda_stream"
        raise InvalidArgument("stream", f"{type(stream).__name__} is none", hint)
    return found


class Block:
    """The device memory of the outputs of one run."""

    def __init__(self, address: int):
        self.address = address
        self.readers: set[int] = set()


class Pool:
    """Allocates device memory blocks of one size, one for the outputs of each run. A block that is no longer referenced
    is used again for a later run, whose stream first waits for the work in other streams that reads the block."""

    def __init__(self, driver: Driver, size: int):
        self.driver, self.size = driver, size
        self.free: list[tuple[int, set[int]]] = []
        self.all: list[int] = []

    def take(self, stream: int) -> Block:
        """Take or allocate a block that work in the stream may write."""
        if self.free:
            address, readers = self.free.pop()
            for reader in readers:
                self.driver.follow(stream, reader)
        else:
            address = self.driver.allocate(self.size)
            self.all.append(address)
        block = Block(address)
        finalize(block, self.free.append, (address, block.readers)).atexit = False
        return block


class DeviceArray:
    """An output in device memory: other libraries read it by `__dlpack__` or `__cuda_array_interface__`, the host by
    `numpy()`. Its memory is reused once it is no longer referenced, and after other streams' pending reads."""

    def __init__(self, session: Session, block: Block, address: int, shape: tuple[int, ...], dtype: np.dtype[Any]):
        self.session, self.block, self.address = session, block, address
        self.shape, self.dtype = shape, dtype

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return prod(self.shape) * self.dtype.itemsize

    def numpy(self) -> Array:
        """A copy on the host, after waiting for the run."""
        found, session = np.empty(self.shape, self.dtype), self.session
        with session.driver:
            session.driver.download(address(found), self.address, self.nbytes, session.stream)
            session.driver.wait(session.stream)
        return found

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        return self.numpy().astype(self.dtype if dtype is None else dtype, copy=False)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.session.driver.dlpack, self.session.device

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        place = self.__dlpack_device__()
        if not place[0]:
            raise BufferError("DLPack has no name for memory that OpenCL shares; numpy() copies it")
        if copy or (dl_device is not None and tuple(dl_device) != place):
            raise BufferError("it is given where it lies; numpy() copies it to the host")
        if stream != -1:
            self._lend(0 if stream in (None, LEGACY_STREAM) else stream or 0)
        return capsule_of(self.address, self.shape, self.dtype, place, self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The CUDA array interface, version 3, whose reader waits for the stream."""
        if self.session.driver.dlpack != CUDA:
            raise AttributeError("__cuda_array_interface__")
        self.block.readers.add(0)
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "strides": None,
            "version": 3,
            "stream": self.session.stream or LEGACY_STREAM,
        }

    def _lend(self, reader: int) -> None:
        """Make the stream `reader`, in which another library reads the array, wait for the run that computes it. The
        array's memory is reused only after the reads that are pending in that stream."""
        session = self.session
        with session.driver:
            session.driver.follow(reader, session.stream)
        self.block.readers.add(reader)

    def __repr__(self) -> str:
        return f"DeviceArray({self.dtype}{list(self.shape)} on device {self.session.device})"


class HostSession:
    """The session of a CPU: each run is complete when the call returns, and returns numpy arrays."""

    device, stream = 0, 0

    def __init__(self, run: Callable[..., Any]):
        self._run = run

    def run(self, /, *inputs: Given, **named: Given) -> Array | tuple[Array, ...]:
        """Run the model, as `Executable.run`."""
        return self._run(*inputs, **named)

    __call__ = run

    def synchronize(self) -> None:
        """Does nothing: all runs are complete."""
