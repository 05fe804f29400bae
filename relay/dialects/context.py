"""A context with every dialect that a module of ours may hold. Each is loaded when first met."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.ir import Dialect

UPSTREAM = (
    "builtin", "func", "arith", "math", "scf", "cf", "tensor", "memref", "linalg", "vector", "llvm", "affine",
    "bufferization", "gpu", "ml_program", "ub", "test",
)  # fmt: skip
"""Dialects of xDSL that our passes read or write."""


def _relay() -> Dialect:
    from relay.dialects.relay import Relay

    return Relay


def _qnn() -> Dialect:
    from relay.dialects.qnn import Qnn

    return Qnn


def _byoc() -> Dialect:
    from relay.dialects.byoc import Byoc

    return Byoc


def _tosa() -> Dialect:
    from relay.dialects.tosa import Tosa

    return Tosa


OURS: dict[str, Callable[[], Dialect]] = {"relay": _relay, "qnn": _qnn, "byoc": _byoc}
"""Dialects that xDSL does not have."""

EXTENDED: dict[str, Callable[[], Dialect]] = {"tosa": _tosa}
"""Upstream dialects of which xDSL lacks ops that we need: xDSL's own plus ours, under upstream's name."""


def make_context() -> Context:
    """A fresh context: ours, upstream's, and upstream's extended by the ops xDSL lacks."""
    ctx = Context()
    every = get_all_dialects()
    for name in UPSTREAM:
        ctx.register_dialect(name, every[name])
    for name, factory in (OURS | EXTENDED).items():
        ctx.register_dialect(name, factory)
    for name in ("builtin", "func", "relay", "qnn"):
        ctx.load_registered_dialect(name)
    return ctx
