"""The compilers `xnnpack` and `litert`: compile a region to a .tflite file, which LiteRT runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from relay.byoc import entries
from relay.byoc.compiler import Artifact, BuildInfo
from relay.byoc.kernels import Kernels, Row, never
from relay.byoc.library import LibraryCompiler, ThreadedCompiler
from relay.byoc.refusals import mean_refusal
from relay.byoc.regions import Region
from relay.byoc.xnnpack import arithmetic, exactness, images, products, shapes
from relay.byoc.xnnpack.writer import Writer
from relay.dialects import relay

if TYPE_CHECKING:
    from relay.byoc.patterns import Entry


def together(ops: Sequence[Operation]) -> Row[Writer]:
    """The rule that checks and generates a group of ops that become one TFLite operator: a float mean (a sum and a
    division), or an op and the clip that follows it. For other groups, the rule's check refuses."""
    if len(ops) == 2 and isinstance(ops[0], relay.SumOp):
        return Row(mean_refusal, images.write_mean)
    if len(ops) == 2:
        return Row(images.clipped_refusal, images.write_clipped)
    return never("no TFLite operator computes these ops together")


KERNELS = Kernels(
    "TFLite operator",
    {**arithmetic.ROWS, **shapes.ROWS, **images.ROWS},
    Row(products.refusal, products.write),
    together,
)
"""The table of all code generators of `xnnpack`."""
CLAMPED = ("relay.nn.avg_pool2d", "relay.nn.max_pool2d", "relay.add", "relay.subtract", "relay.multiply")


class TFLite(LibraryCompiler):
    """The common base of the compilers `xnnpack` and `litert`, which writes a .tflite file. It takes the ops that
    `KERNELS` lists."""

    extra: ClassVar[str] = "litert"

    def missing(self) -> str | None:
        return None if find_spec("ai_edge_litert") else "ai-edge-litert is not installed"

    def reason(self, ops: Sequence[Operation]) -> str | None:
        return KERNELS.refusal(ops)

    def patterns(self) -> Sequence[Entry]:
        return [*super().patterns(), *entries.clamps(self.check, *CLAMPED)]

    def compile(self, function: FuncOp, build: BuildInfo) -> Artifact:
        writer = Writer(Region(function), f"relay {self.name}")
        return Artifact(writer.run(KERNELS.write), self.params(), {"tflite": writer.model.listing})


@dataclass(frozen=True)
class XnnpackCompiler(ThreadedCompiler, TFLite):
    """Runs XNNPACK's kernels, and LiteRT's optimised kernels for ops that XNNPACK does not take."""

    name: ClassVar[str] = "xnnpack"
    exact: ClassVar[bool] = False
    difference: ClassVar[str] = "a code may be 1 off after an op: XNNPACK multiplies in float32 and rounds half to even"


@dataclass(frozen=True)
class LiteRTCompiler(TFLite):
    """Runs LiteRT's reference kernels: slow, and equal to the formulas of integer ops, bit for bit."""

    name: ClassVar[str] = "litert"

    def reason(self, ops: Sequence[Operation]) -> str | None:
        return KERNELS.refusal(ops) or exactness.refusal(ops)
