"""The compiler `onnxruntime`: a region becomes an ONNX model, which ONNX Runtime runs on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from relay.byoc import entries
from relay.byoc.compiler import Artifact, Compiler, Refusal
from relay.byoc.regions import Region
from relay.errors import InvalidArgument

if TYPE_CHECKING:
    from relay.byoc.patterns import Entry

PACKAGES = ("onnx", "onnxruntime")


@dataclass(frozen=True)
class OnnxRuntimeCompiler(Compiler):
    """ONNX Runtime's CPU kernels on `threads` threads; int8 is computed as uint8, 128 higher.

    Its kernels for int8 weights add two products in 16 bits, saturating, on x86 processors without VNNI: with
    `unsigned_weights` weights are uint8 and sums exact on these too; with VNNI that takes several times longer.
    """

    name: ClassVar[str] = "onnxruntime"
    exact: ClassVar[bool] = False
    difference: ClassVar[str] = (
        "a code may be 1 off after an op: ONNX Runtime multiplies in float32 and rounds half to even"
    )
    extra: ClassVar[str] = "onnxruntime"
    threads: int = 1
    unsigned_weights: bool = False

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise InvalidArgument("compiler onnxruntime", f"threads is {self.threads}", "it must be at least 1")

    def missing(self) -> str | None:
        absent = [package for package in PACKAGES if find_spec(package) is None]
        return f"{' and '.join(absent)} not installed" if absent else None

    def patterns(self) -> Sequence[Entry]:
        return [*entries.products(refusal), *entries.means(refusal)]

    def supports(self, op: Operation) -> bool | Refusal:
        return entries.taken(refusal([op]))

    def compile(self, function: FuncOp) -> Artifact:
        from relay.byoc.onnxruntime.kernels import model

        data = model(Region(function), self.unsigned_weights)
        return Artifact(data, {"threads": np.array(self.threads, np.int32)})


def refusal(ops: Sequence[Operation]) -> str | None:
    """Why these ops are not written; None if they are."""
    from relay.byoc.onnxruntime import kernels  # here: without onnx the compiler can still say what is missing

    return kernels.refusal(ops)
