"""The data of a whole model from which its C files are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relay.byoc.c import source
from relay.byoc.c.program import Program, Tensor
from relay.lowering.exported_regions import Regions
from relay.signature import TensorInfo


@dataclass(frozen=True, slots=True)
class Model:
    """A model to be written as C: its name, the C program of its `main` function, the descriptions of its inputs and
    outputs, and the functions that other external compilers implement (`regions`)."""

    name: str
    program: Program
    inputs: Sequence[TensorInfo]
    outputs: Sequence[TensorInfo]
    regions: Regions

    @property
    def arena(self) -> int:
        """The size of the arena in bytes."""
        return self.program.arena

    @property
    def macro(self) -> str:
        """The prefix of the macros in the header."""
        return self.name.upper()

    @property
    def rows(self) -> list[tuple[Tensor, TensorInfo]]:
        """The inputs, then the outputs, each with its description."""
        tensors = [*self.program.inputs, *self.program.outputs]
        return list(zip(tensors, [*self.inputs, *self.outputs], strict=True))

    @property
    def weights(self) -> int:
        """The total size of the constants in bytes."""
        return sum(constant.array.nbytes for constant in self.program.constants.values())

    @property
    def parameters(self) -> str:
        """The parameter list of the C function that runs the model, without the arena."""
        return ", ".join(source.parameter(tensor) for tensor, _ in self.rows)
