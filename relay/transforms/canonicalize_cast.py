"""The pass `canonicalize-cast`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint, Rewriter

from relay.dialects import relay
from relay.passes import Pass
from relay.transforms.fusion import bits, users
from relay.transforms.legalization import own


@dataclass(frozen=True)
class CanonicalizeCast(Pass):
    """Give each user of a widened value its own cast, so that kernels read the narrow value. `%w = cast %x; f(%w);
    g(%w)` becomes `f(cast %x); g(cast %x)`. Casts to a type that is not wider stay shared."""

    name: ClassVar[str] = "canonicalize-cast"
    opt_level = 3
    invalidates = ()
    why = "lets each kernel widen what it reads"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for cast in [inner for inner in own(op) if isinstance(inner, relay.CastOp)]:
            if bits(cast.result) <= bits(cast.input):
                continue
            readers = set(users(cast.result))
            for user in [op for op in cast.parent.ops if op in readers][1:] if cast.parent is not None else ():
                copy = cast.clone()
                copy.result.name_hint = None
                Rewriter.insert_op(copy, InsertPoint.before(user))
                for index, value in enumerate(user.operands):
                    if value is cast.result:
                        user.operands[index] = copy.result
