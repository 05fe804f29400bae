"""The compiler `onnxruntime`: compiles a region to an ONNX model, which ONNX Runtime runs on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import ClassVar

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from relay.byoc.compiler import Artifact, BuildInfo
from relay.byoc.library import ThreadedCompiler
from relay.byoc.regions import Region

PACKAGES = ("onnx", "onnxruntime")


@dataclass(frozen=True)
class OnnxRuntimeCompiler(ThreadedCompiler):
    """Runs ONNX Runtime's CPU kernels; int8 values are computed as uint8, increased by 128.

    On x86 processors without VNNI its kernels for int8 weights add two products in 16 bits with saturation; there,
    weights are uint8, so that sums are exact. `unsigned_weights` overrides this choice; True takes several times longer
    on processors with VNNI.
    """

    name: ClassVar[str] = "onnxruntime"
    exact: ClassVar[bool] = False
    difference: ClassVar[str] = (
        "a code may be 1 off after an op: ONNX Runtime multiplies in float32 and rounds half to even"
    )
    extra: ClassVar[str] = "onnxruntime"
    unsigned_weights: bool | None = None

    def missing(self) -> str | None:
        absent = [package for package in PACKAGES if find_spec(package) is None]
        return f"{' and '.join(absent)} not installed" if absent else None

    def reason(self, ops: Sequence[Operation]) -> str | None:
        from relay.byoc.onnxruntime import kernels  # here: without onnx the compiler can still say what is missing

        return kernels.KERNELS.refusal(ops)

    def compile(self, function: FuncOp, build: BuildInfo) -> Artifact:
        from relay.byoc.onnxruntime.kernels import model

        unsigned = build.target.saturates_in_libraries if self.unsigned_weights is None else self.unsigned_weights
        data, listing = model(Region(function), unsigned)
        return Artifact(data, self.params(), {"onnx": listing})
