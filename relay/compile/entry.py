"""`relay.build`: finds a cached executable without importing the compiler, or builds it."""

from __future__ import annotations

import gc
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from mmap import mmap
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, SupportsIndex, cast

from relay.arguments import whole
from relay.compile import cache
from relay.compile.request import Request
from relay.errors import InvalidArgument
from relay.files import NamedBytes
from relay.mapping import build_files
from relay.store import store

if TYPE_CHECKING:
    import numpy.typing as npt
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from relay.byoc.composition import Targets
    from relay.compile.records import Records
    from relay.module import IRModule
    from relay.passes import Pipeline
    from relay.runtime import Executable
    from relay.target import Target

IMPORTER = ("batch", "shapes", "outputs", "numerics", "custom_ops")
"""The arguments of `build` that are options of the importer, where the model is a file."""


def build(
    mod: IRModule | ModuleOp | str | PathLike[str] | bytes | bytearray | memoryview | object,
    target: str | Target = "llvm",
    params: Mapping[str, npt.ArrayLike] | None = None,
    *,
    pipeline: Pipeline | Sequence[ModulePass] | str | None = None,
    opt_level: int | None = None,
    batch: SupportsIndex | str | None = None,
    shapes: Mapping[str, Sequence[SupportsIndex | str] | SupportsIndex] | None = None,
    outputs: Sequence[str | SupportsIndex] | None = None,
    numerics: str | None = None,
    custom_ops: Mapping[str, Any] | None = None,
    frontend: Mapping[str, Any] | None = None,
    records: Records | None = None,
    external: Targets | None = None,
    exact: bool | None = None,
    num_threads: int = 1,
    max_variants: int | None = None,
    maximum: Mapping[str, SupportsIndex] | None = None,
    memory_limit: SupportsIndex | None = None,
    progress: bool | None = None,
) -> Executable:
    """Compile a module or a model for a target. A model is a file or its bytes, a Keras model, a PyTorch
    `ExportedProgram` or an ONNX `ModelProto`. A file `x.mlir` holds a module's text; its large weights may be in
    `x.safetensors` beside it.

    `params` replaces weights by name. `pipeline` (passes, or their text) runs instead of `default_pipeline(target)`;
    passes that code generation needs and that it lacks run after it. `opt_level` (0-4; default: the `PassContext`'s, 2)
    selects the passes, and LLVM's optimization level: 0 at level 0, 1 at 1, 3 from 2 on; integer results never depend
    on it. Passes that were requested on the module run where they were requested. `batch` is the number of images per
    run: for a file the leading axis of every input, for a module that of each `tensor<?x...>`. `shapes` gives input
    shapes by name, for a module also sizes by their names; a name in place of a size (or of a batch) leaves it open.
    `numerics` names the runtime whose integer results are reproduced exactly, such as "tflm" (docs/numerics.md);
    `numerics`, `outputs` and `custom_ops` are options of the importer, and `frontend` is a mapping of its other
    options. If sizes are open, the executable compiles the model again for each new combination of sizes that a run
    has, and keeps the code for the `max_variants` (default: 8) combinations that were used last (docs/sizes.md).
    `maximum` gives the largest value of sizes by name: one build then serves all lengths of
    a sequence, where the model allows it, and inputs that the model returns longer become states of a stream
    (docs/streams.md). `records` are schedules that `relay.tune` measured: they are used for the kernels they contain
    (docs/schedules.md). `external` names external compilers; ops that they support are given to them first, and with
    `exact=True` only ops whose integers they compute exactly. The module is partitioned as by
    `relay.build_external_compiler` with its defaults. A run uses up to `num_threads` threads; `Executable.num_threads`
    can be set later, too. `memory_limit` is the maximum size of the arena in bytes: if it is exceeded, the error names
    the layer that needs most, and `Executable.graph["layers"]` has the bytes of all layers. `progress` shows the
    progress of the build: by default on a terminal and in a notebook, if it takes longer than a second; as a bar if the
    package rich is installed, else as text. Raises RelayError.
    """
    limit = None if memory_limit is None else number_of_bytes(memory_limit)
    mod = _file_or_module(mod)
    if numerics in ("strict", "relaxed"):
        what = f"{numerics!r} is no runtime whose integers are computed"
        raise InvalidArgument("numerics", what, f"of external compilers, write exact={numerics == 'strict'}")
    given = zip(IMPORTER, (whole(batch), shapes, outputs, numerics, custom_ops), strict=True)
    asked = {name: value for name, value in given if value is not None}
    if asked:
        if isinstance(mod, str | bytes | PathLike):
            frontend = with_options(frontend, asked)
        else:
            from relay.compile.dynamic import with_sizes

            mod = with_sizes(mod, **cast(Any, asked))
    request = Request(
        mod, target, params, pipeline, opt_level, frontend, external, exact, progress, max_variants, records, maximum
    )
    kept = store()
    with build_files(None if kept is None else kept.folder):
        executable = _found_or_built(request)
    if limit is not None:
        check_memory(executable, limit)
    executable.num_threads = num_threads
    return executable


def _found_or_built(request: Request) -> Executable:
    """The executable of a request, from the cache if possible."""
    keyed = cache.keyed(request)
    executable = None if keyed is None else cache.lookup_by_request(keyed, rebuild)
    if executable is None:
        with gc_paused():
            from relay.compile.model import compile_model

            executable, kept = compile_model(request)
        if keyed is not None and kept is not None and keyed == cache.keyed(request):  # the file is as it was
            cache.remember_request(keyed, kept)
    return executable


def _file_or_module(mod: object) -> IRModule | ModuleOp | str | PathLike[str] | bytes:
    """Parse the file of a path that ends in `.mlir`, and save a model in memory to bytes; return other arguments
    unchanged."""
    if isinstance(mod, bytearray | memoryview):
        return bytes(cast(bytearray, mod))
    if isinstance(mod, str | PathLike):
        path = cast("str | PathLike[str]", mod)
        if not str(fspath(path)).endswith(".mlir"):
            return path
        from relay.module import read_module

        return read_module(path)
    if not isinstance(mod, bytes):
        from relay.frontend.importing.formats import live

        if live(mod):
            from relay.frontend import saved_model

            return saved_model(mod)
    return cast("IRModule | ModuleOp | bytes", mod)


@contextmanager
def gc_paused() -> Generator[None]:
    """Pause the cyclic garbage collector: a build makes millions of objects and few cycles, and collections would
    take a tenth of its time.

    At the end, the build's remaining objects are moved to the oldest generation; otherwise the next allocation would
    start a collection over all of them, which takes a twentieth of a build. They are collected with that generation, or
    before a later build once builds have left `MOST_LEFT` objects."""
    if not gc.isenabled():
        yield
        return
    if sum(LEFT) > MOST_LEFT:
        LEFT.clear()
        gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count() == 0:  # else someone keeps objects there, which must stay
            LEFT.append(gc.get_count()[0])
            gc.freeze()
            gc.unfreeze()
        gc.enable()


LEFT: list[int] = []
"""For each build since the last garbage collection that a build began with, the number of Python objects that it
left."""
MOST_LEFT = 400_000
"""The number of Python objects left by earlier builds above which the next build begins with a garbage collection:
about the number that the build of a small network leaves."""


def with_options(frontend: object, asked: Mapping[str, object]) -> Any:
    """Merge the importer's options with those given as arguments of `build`; one given in both places is an error. A
    value that is not a mapping is returned unchanged."""
    if frontend is not None and not isinstance(frontend, Mapping):
        return frontend
    options: dict[str, object] = {**cast("Mapping[str, object]", frontend or {})}
    for name in asked:
        if name in options:
            raise InvalidArgument(name, "is given twice", "leave it out of frontend")
    return {**options, **asked}


def rebuild(request: Request, name: str) -> Executable:
    """Build a model file again from the bytes in `request.model`. `name` is the file's name; the bytes are those that
    it had at the first build, and it may have changed since. The current pass context is ignored."""
    from relay.compile.model import compile_model
    from relay.passes import PassContext
    from relay.passes.context import activated

    assert isinstance(request.model, bytes | mmap)
    request = replace(request, model=NamedBytes(request.model, name))
    with gc_paused(), activated(PassContext()):
        return compile_model(request)[0]


MEMORY_HINT = "give it more, make the layer smaller, or split its image"


def number_of_bytes(limit: object) -> int:
    """The value of the argument `memory_limit`. Raises InvalidArgument."""
    most = whole(limit)
    if not isinstance(most, int) or isinstance(most, bool) or most < 0:
        raise InvalidArgument("memory_limit", f"is {limit!r}, no number of bytes", "write memory_limit=65536")
    return most


def check_memory(executable: Executable, most: int) -> None:
    """Raise InvalidArgument if the executable's arena exceeds `most` bytes, naming the layer that needs most. Also
    raise it if the executable has open sizes, because its memory plan is not known, and if it runs on a GPU, which has
    memory of its own."""
    graph: dict[str, Any] = executable.graph
    if "layers" not in graph or "device" in graph:
        raise InvalidArgument("memory_limit", "is for CPUs and known sizes", "leave it out, or give sizes and a CPU")
    if (needed := int(graph["arena_bytes"])) <= most or not graph["layers"]:
        return
    peak = max(graph["layers"], key=lambda row: row["bytes"])
    layer = peak["layer"] or peak["kernel"]
    raise InvalidArgument(
        "memory_limit", f"is {most} bytes, and the arena takes {needed}: {layer} needs {peak['bytes']}", MEMORY_HINT
    )
