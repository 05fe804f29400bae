"""Kernels for a GPU as a library: its one function uploads, launches, and downloads. Drivers are loaded by the first
run: what was built for a GPU can be saved, and looked at, where there is none."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from relay.runtime.device_program import DeviceProgram
from relay.runtime.library import Library


class DeviceLibrary(Library):
    """PTX or SPIR-V, and the graph that says what is launched."""

    def __init__(self, code: bytes, graph: Mapping[str, Any], sources: Mapping[str, Callable[[], str]] | None = None):
        super().__init__(code, sources)
        self.graph = graph
        self.lock = threading.Lock()
        self.program: Callable[[int], None] | None = None

    def function(self, symbol: str) -> Callable[[int], None]:
        def run(table: int) -> None:
            with self.lock:
                if self.program is None:
                    self.program = self.start()
                self.program(table)

        return run

    def start(self) -> Callable[[int], None]:
        """What runs the model on a device, which is looked for now. Raises Unsupported where there is none."""
        kind = self.graph["device"]["kind"]
        if kind == "cuda":
            from relay.runtime.cuda_driver import CudaDriver, check_device

            driver = CudaDriver()
            check_device(driver, str(self.graph["device"]["chip"]))
            return DeviceProgram(driver, self.code, self.graph)
        from relay.runtime.opencl_driver import OpenClDriver

        return DeviceProgram(OpenClDriver(), self.code, self.graph)
