"""`relay.build`: an executable that was built before is found again without importing the compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from relay import build_cache

if TYPE_CHECKING:
    import numpy.typing as npt
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from relay.byoc.composition import Targets
    from relay.lowering.targets import CpuTarget
    from relay.module import IRModule
    from relay.passes import Pipeline
    from relay.runtime import Executable


def build(
    mod: IRModule | ModuleOp | str | PathLike[str] | bytes,
    target: str | CpuTarget = "llvm",
    params: Mapping[str, npt.ArrayLike] | None = None,
    *,
    pipeline: Pipeline | Sequence[ModulePass] | str | None = None,
    opt_level: int | None = None,
    frontend: Mapping[str, Any] | None = None,
    external: Targets | None = None,
    numerics: str | None = None,
    num_threads: int = 1,
    progress: bool | None = None,
) -> Executable:
    """Compile a module, or the model in a file (or its bytes), for a target.

    `params` replaces weights by name. `pipeline` (passes, or their text) runs instead of `default_pipeline(target)`;
    what code generation needs and it leaves out, runs after it. `opt_level` (0-4; default: the `PassContext`'s, 2)
    says which passes run, and LLVM's effort: 0 at level 0, 1 at 1, 3 from 2 on; the integers never depend on it.
    Passes that were requested on the module run where they were asked for. `frontend` holds options of the importer.
    `external` names external compilers that get what they take first, and `numerics="strict"` lets them take only what
    gives the same integers: `relay.build_external_compiler` with its defaults. A run uses up to `num_threads` threads;
    `Executable.num_threads` can be set later, too. `progress` shows a bar: by default on a terminal, if rich is
    installed and the build takes longer than a second. Raises RelayError.
    """
    plain = params is None and pipeline is None and external is None and numerics is None
    key = build_cache.quick_key(mod, target, opt_level, frontend) if plain else None

    def compiled() -> tuple[Executable, str | None]:
        from relay.driver import compile_model

        return compile_model(mod, target, params, pipeline, opt_level, frontend, external, numerics, progress)

    executable = None if key is None else build_cache.quickly(key, lambda: compiled()[0])
    if executable is None:
        executable, kept = compiled()
        if key is not None and kept is not None:
            build_cache.point(key, kept)
    executable.num_threads = num_threads
    return executable
