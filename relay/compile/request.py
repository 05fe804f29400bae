"""The arguments of a build as given (`Request`), and as resolved (`Recipe`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from mmap import mmap
from os import PathLike
from typing import TYPE_CHECKING, Any, SupportsIndex

if TYPE_CHECKING:
    import numpy.typing as npt
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from relay.byoc.composition import Targets
    from relay.compile.records import Records
    from relay.module import IRModule
    from relay.passes import PassContext, Pipeline
    from relay.target import Target


@dataclass(frozen=True, eq=False)
class Request:
    """The arguments of `relay.build` that determine what is built; documented there."""

    model: IRModule | ModuleOp | str | PathLike[str] | bytes | mmap
    target: str | Target = "llvm"
    params: Mapping[str, npt.ArrayLike] | None = None
    pipeline: Pipeline | Sequence[ModulePass] | str | None = None
    opt_level: int | None = None
    frontend: Mapping[str, Any] | None = None
    external: Targets | None = None
    exact: bool | None = None
    progress: bool | None = None
    max_variants: int | None = None
    records: Records | None = None
    maximum: Mapping[str, SupportsIndex] | None = None


@dataclass(frozen=True, eq=False)
class Recipe:
    """A checked request to build a model: the arguments of `relay.build`, with the names of target and pipeline
    resolved, and the pass context of the call."""

    model: IRModule | str | bytes
    """A module, the path of a file, or its bytes."""
    target: Target
    params: Mapping[str, npt.ArrayLike]
    pipeline: Pipeline
    context: PassContext
    frontend: Mapping[str, Any]
    external: Targets | None = None
    exact: bool | None = None
    max_variants: int | None = None
    """The largest number of variants that an executable with open sizes keeps."""
    maximum: Mapping[str, SupportsIndex] | None = None
    """The maximum of each open size, by name."""
    repeated: bool = False
    """Whether the code must contain a function (`relay_repeat`) that runs the model on consecutive blocks of the batch,
    whose number is given at run time."""
    shorter: IRModule | None = None
    """The same model for a sequence of `length - 1` elements, or None. The differences between both models show which
    sizes and constants depend on the length, so that the code can serve all lengths up to `length`."""
    length: int = 0
