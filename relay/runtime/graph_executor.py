"""TVM's interface for running executables: `module = graph_executor.GraphModule(lib["default"](device))`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from relay.errors import InvalidArgument
from relay.runtime.executable import Executable
from relay.runtime.memory import Array

if TYPE_CHECKING:
    from relay.runtime.benchmark import BenchmarkResult


class NDArray(np.ndarray[Any, np.dtype[Any]]):
    """An array that also has TVM's methods."""

    def numpy(self) -> Array:
        """The array as one of numpy's own class."""
        return np.asarray(self)

    asnumpy = numpy


class GraphModule:
    """An executable under TVM's names: `set_input`, `run`, `get_output(0).numpy()`, `benchmark`."""

    def __init__(self, module: object):
        if not isinstance(module, Executable):
            raise InvalidArgument(
                "GraphModule", "takes what relay.build returns", 'write GraphModule(lib["default"]())'
            )
        self.module = module

    def set_input(self, key: str | int | None = None, value: Any = None, **named: Any) -> None:
        """Bind copies of inputs, by name or number."""
        given = named if key is None else {key: value, **named}
        for name, array in given.items():
            self.module.set_input(name, array)

    def run(self, **named: Any) -> None:
        """Run on the bound inputs, after binding `named`."""
        self.set_input(**named)
        self.module.run()

    def get_num_inputs(self) -> int:
        """The number of inputs."""
        return len(self.module.inputs)

    def get_num_outputs(self) -> int:
        """The number of outputs."""
        return len(self.module.outputs)

    def get_output(self, index: int) -> NDArray:
        """A copy of an output of the last run."""
        return self.module.get_output(index).view(NDArray)

    def benchmark(
        self, device: object = None, func_name: str = "main", repeat: int = 5, number: int = 5
    ) -> BenchmarkResult:
        """Time `repeat * number` runs on the bound inputs, each separately, in seconds."""
        return self.module.benchmark(repeat=repeat * number)
