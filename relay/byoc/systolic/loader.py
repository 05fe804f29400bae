"""Runs programs of `systolic` on the simulator. Imports nothing of the compiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from relay.byoc.systolic.isa import CLOCK, KIND, decode
from relay.byoc.systolic.simulator import Simulator
from relay.runtime.memory import Array
from relay.runtime.programs import ProgramLoader


class Device(ProgramLoader):
    """A program on a simulated accelerator; call it with the tensors. Each call has its own machine, so that threads
    may call it at the same time; `cycles` (by kind of instruction) and `microseconds` refer to the last call."""

    kind: ClassVar[str] = KIND

    def prepare(self) -> None:
        self.code = list(decode(self.arrays["code"].tobytes()))
        self.cycles: dict[str, int] = {}

    @property
    def microseconds(self) -> float:
        """The simulated duration of the last call in microseconds."""
        return sum(self.cycles.values()) / CLOCK

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        tensors = [array.reshape(-1).view(np.int8) for array in (*inputs, *outputs)]
        workspace = tensors.pop() if self.program else np.empty(0, np.int8)
        machine = Simulator([self.arrays["constants"], workspace, *tensors])
        machine.run(self.code)
        self.cycles = machine.cycles
