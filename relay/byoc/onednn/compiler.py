"""The compiler `onednn`: compiles a region to a list of oneDNN primitives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from relay.byoc.compiler import Artifact, BuildInfo
from relay.byoc.kernels import Kernels, Row
from relay.byoc.library import ThreadedCompiler
from relay.byoc.onednn import arithmetic, images, products
from relay.byoc.onednn.library import VARIABLE, open_library
from relay.byoc.onednn.writer import Writer
from relay.byoc.refusals import mean_refusal
from relay.byoc.regions import Region
from relay.errors import Unsupported

MEAN = Row(mean_refusal, arithmetic.write_float_mean)
KERNELS = Kernels(
    "oneDNN primitive", {**arithmetic.ROWS, **images.ROWS}, Row(products.refusal, products.write), lambda ops: MEAN
)
"""The table of all code generators of `onednn`."""


@dataclass(frozen=True)
class OneDnnCompiler(ThreadedCompiler):
    """Runs oneDNN's primitives on the CPU through its C API.

    oneDNN's quantized convolutions are not exact on x86 processors without VNNI: there, they are computed in float32.
    """

    name: ClassVar[str] = "onednn"
    version: ClassVar[str] = "2"
    exact: ClassVar[bool] = False
    difference: ClassVar[str] = "a code may be 1 off after an op: oneDNN scales in float32 and rounds half to even"
    extra: ClassVar[str] = "onednn"

    def missing(self) -> str | None:
        try:
            open_library()
        except Unsupported:
            return f"oneDNN's library (libdnnl, version 3) is neither installed nor named by {VARIABLE}"
        return None

    def reason(self, ops: Sequence[Operation]) -> str | None:
        return KERNELS.refusal(ops)

    def compile(self, function: FuncOp, build: BuildInfo) -> Artifact:
        writer = Writer(Region(function), build.target.saturates_in_libraries)
        for kernel in writer.region.kernels:
            KERNELS.write(writer, kernel)
        made = writer.finish()
        return Artifact(made.pack(), self.params(), {"onednn": made.listing})
