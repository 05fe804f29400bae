"""External compilers of the filecheck tests: `relay-opt --load %S/../compilers.py`. They compile nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from relay.byoc import Artifact, BuildInfo, Compiler, Refusal, register
from relay.byoc.patterns import Entry, Match, is_constant, is_op, wildcard
from relay.dialects.op import shape


class Compiled(Compiler):
    """What the compilers share: the ops they take, by name."""

    takes: ClassVar[Sequence[str]] = ()

    def supports(self, op: Operation) -> bool | Refusal:
        return op.name.removeprefix("relay.") in self.takes

    def cost(self, ops: Sequence[Operation]) -> float | None:
        return 1.0 + len(ops)

    def compile(self, function: FuncOp, build: BuildInfo) -> Artifact:
        return Artifact(function.sym_name.data.encode())


def small(match: Match) -> bool | Refusal:
    """No more than 16 elements."""
    return True if shape(match.root.results[0])[0] <= 16 else Refusal("it has 16 lanes")


@register
class Alpha(Compiled):
    """Takes sums and what clips them, as one where that is possible."""

    name: ClassVar[str] = "alpha"
    takes = ("add", "subtract", "nn.conv2d", "abs")

    def patterns(self) -> Sequence[Entry]:
        added = is_op("add")(wildcard(), is_constant())
        return [
            Entry("add_clip", is_op("clip")(added.optional(lambda x: is_op("negative")(x))), small),
            Entry("square", (x := wildcard()) * x),
        ]


@register
class Beta(Compiled):
    """Takes products and functions; costs more than `alpha`, and its products are not exact."""

    name: ClassVar[str] = "beta"
    takes = ("multiply", "tanh", "negative", "abs", "add")
    exact: ClassVar[bool] = False
    difference: ClassVar[str] = "products are rounded once more"

    def patterns(self) -> Sequence[Entry]:
        return [Entry("negative_abs", is_op("abs")(is_op("negative")(wildcard())), exact=True)]

    def cost(self, ops: Sequence[Operation]) -> float | None:
        return 1.5 + len(ops) - (2.0 if any(op.name == "relay.abs" for op in ops) else 0.0)
