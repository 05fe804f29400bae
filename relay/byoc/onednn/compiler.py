"""The compiler `onednn`: a region becomes a list of oneDNN primitives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from relay.byoc import entries
from relay.byoc.compiler import Artifact, Compiler, Refusal
from relay.byoc.onednn.kernels import program, refusal
from relay.byoc.onednn.library import VARIABLE, open_library
from relay.byoc.patterns import Entry
from relay.byoc.regions import Region
from relay.errors import InvalidArgument, Unsupported


@dataclass(frozen=True)
class OneDnnCompiler(Compiler):
    """oneDNN's primitives on the CPU, called through its C API, on `threads` threads."""

    name: ClassVar[str] = "onednn"
    exact: ClassVar[bool] = False
    difference: ClassVar[str] = "a code may be 1 off after an op: oneDNN scales in float32 and rounds half to even"
    extra: ClassVar[str] = "onednn"
    threads: int = 1

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise InvalidArgument("compiler onednn", f"threads is {self.threads}", "it must be at least 1")

    def missing(self) -> str | None:
        try:
            open_library()
        except Unsupported:
            return f"oneDNN's library (libdnnl, version 3) is neither installed nor named by {VARIABLE}"
        return None

    def patterns(self) -> Sequence[Entry]:
        return [*entries.products(refusal), *entries.means(refusal)]

    def supports(self, op: Operation) -> bool | Refusal:
        return entries.taken(refusal([op]))

    def compile(self, function: FuncOp) -> Artifact:
        return Artifact(program(Region(function)).pack(), {"threads": np.array(self.threads, np.int32)})
