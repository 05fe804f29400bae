"""GPU executables: their library, which holds PTX or SPIR-V and a list of launches, and the objects that run it on a
device. Drivers are loaded when a model first runs, so a model built for a GPU can be saved and inspected without them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from relay.errors import InvalidArgument
from relay.runtime.device_program import Call, Model, Program
from relay.runtime.dlpack import device_of
from relay.runtime.library import Library

if TYPE_CHECKING:
    from relay.runtime.device_program import Driver


class DeviceLibrary(Library):
    """The library of a GPU executable: PTX or SPIR-V, and the graph of its launches."""

    def __init__(
        self,
        code: bytes,
        graph: Mapping[str, Any],
        sources: Mapping[str, Callable[[], str]] | None = None,
        artifacts: Mapping[str, bytes] | None = None,
    ):
        super().__init__(code, sources, artifacts)
        self.graph = graph

    def function(self, symbol: str) -> Callable[[int], None]:
        raise InvalidArgument(f"function {symbol}", "is none of the host's", "Executable.run runs the kernels")


def open_device(graph: Mapping[str, Any], number: int) -> Driver:
    """Open the CUDA or OpenCL device with this number, for an executable whose JSON description is `graph`. Raises
    Unsupported if there is no such device, or if it cannot run the code of the executable."""
    if graph["device"]["kind"] == "cuda":
        from relay.runtime import cuda_driver

        cuda = cuda_driver.driver(number)
        cuda_driver.check_device(cuda, str(graph["device"]["chip"]))
        return cuda
    from relay.runtime import opencl_driver

    return opencl_driver.driver(number)


class Devices:
    """An executable's model on one or several devices: its kernels and constants are loaded on a device when it is
    first used."""

    def __init__(self, code: bytes, graph: Mapping[str, Any], constants: int, externals: Call | None = None):
        """`constants` and `externals`: see `Model`."""
        self.code, self.graph, self.constants, self.externals = code, graph, constants, externals
        self.lock = threading.Lock()
        self.models: dict[int, Model] = {}
        self.program: Program | None = None

    def model(self, number: int = 0) -> tuple[Driver, Model]:
        """The driver opened for the device `number`, and the model loaded on that device."""
        driver = open_device(self.graph, number)
        with self.lock:
            if number not in self.models:
                self.models[number] = Model(driver, self.code, self.graph, self.constants, self.externals)
            return driver, self.models[number]

    def have(self, values: Sequence[object]) -> bool:
        """Whether one of these arrays is in device memory."""
        return any(device_of(value) is not None for value in values)

    def __call__(self, table: int) -> None:
        """Run once on the first device; the table has the host addresses of inputs and outputs."""
        if self.program is None:
            model = self.model()[1]
            with self.lock:
                self.program = self.program or Program(model)
        program = self.program
        with self.lock:
            program(table)
