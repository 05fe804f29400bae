"""A whole model as C files describe it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relay.byoc.c import source
from relay.byoc.c.program import Program, Tensor
from relay.lowering.exported_regions import Regions
from relay.signature import TensorInfo


@dataclass(frozen=True, slots=True)
class Model:
    """A program with what its arguments and results stand for."""

    name: str
    program: Program
    inputs: Sequence[TensorInfo]
    outputs: Sequence[TensorInfo]
    regions: Regions

    @property
    def arena(self) -> int:
        """Bytes."""
        return self.program.arena

    @property
    def macro(self) -> str:
        """The start of its macros."""
        return self.name.upper()

    @property
    def rows(self) -> list[tuple[Tensor, TensorInfo]]:
        """Inputs, then outputs."""
        tensors = [*self.program.inputs, *self.program.outputs]
        return list(zip(tensors, [*self.inputs, *self.outputs], strict=True))

    @property
    def weights(self) -> int:
        """Bytes of all constants."""
        return sum(constant.array.nbytes for constant in self.program.constants.values())

    @property
    def parameters(self) -> str:
        """Of the function that runs it, without the arena."""
        return ", ".join(source.parameter(tensor) for tensor, _ in self.rows)
