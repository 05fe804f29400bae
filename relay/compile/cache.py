"""The build cache: finds the executable of a model that was built before in the same way.

A key holds all that a build depends on: the model, the passes with their options, the context, the target, the compiler
itself, and the plug-ins that add dialects or legalization patterns. Where these are not known (passes of other
packages, passes that the module requests or that read files, instruments that observe passes, dialects that a program
registers), the cache is not used. An external compiler always runs, since no key says what its output depends on; the
rest of the build is then looked up by a key that contains this output.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from mmap import mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from relay.arguments import is_list, is_mapping
from relay.compile.request import Recipe, Request
from relay.errors import RelayError
from relay.files import name_of, open_file
from relay.mapping import UNRELEASED, contents, used
from relay.plug_ins import installed
from relay.runtime import Executable, Library, archive, processor
from relay.runtime.device import DeviceLibrary
from relay.store import Store, key_of, store

if TYPE_CHECKING:
    import numpy.typing as npt
    from xdsl.passes import ModulePass

    from relay.module import IRModule

KIND, QUICK = "build", "quick"
SOURCES = ("mlir", "ll", "asm")
SOURCES_OF_DEVICES = {"cuda": ("mlir", "ll", "ptx"), "opencl": ("mlir", "ll")}
"""The kinds of source text of an executable for each kind of GPU target."""
PLAIN = (str, int, float, bool, type(None))
_ELSEWHERE = b"\n\x08location\x12"
"""Bytes that occur in an ONNX file whose weights are in other files: a key of `external_data`, and the tag of its
value."""


def content_of(model: IRModule | str | bytes) -> IRModule | bytes | mmap | None:
    """The model, or the bytes of its file; None if they cannot be read, or other files hold its weights."""
    if not isinstance(model, str):
        return model
    try:
        with open_file(model) as file:
            data = contents(file)
    except (OSError, ValueError):
        return None
    for start in range(0, len(data), UNRELEASED):
        if data.find(_ELSEWHERE, start, start + UNRELEASED + len(_ELSEWHERE)) >= 0:
            return None
        used(UNRELEASED)
    return data


def key(content: IRModule | bytes | mmap, recipe: Recipe) -> str | None:
    """The cache key of a build; None if the build depends on something that a key cannot contain."""
    from xdsl.dialects.func import FuncOp

    from relay.module import REQUESTS
    from relay.target import to_attributes

    ctx, target = recipe.context, recipe.target
    if store() is None or ctx.instruments or not all(map(_is_reproducible_from_text, recipe.pipeline)):
        return None
    if not _plain((*ctx.config.values(), *recipe.frontend.values())) or (others := plug_ins()) is None:
        return None
    if not isinstance(content, bytes | mmap) and (
        REQUESTS in content.op.attributes
        or any(
            isinstance(op, FuncOp) and "compiler" in op.attributes and op.body.blocks
            for op in content.op.body.block.ops
        )
    ):
        return None
    said = {
        "frontend": sorted((name, repr(value)) for name, value in recipe.frontend.items()),
        "params": sorted((name, *_array(value)) for name, value in recipe.params.items()),
        "target": str(to_attributes(target)),
        "context": [ctx.opt_level, sorted(ctx.required_pass), sorted(ctx.disabled_pass)],
        "config": sorted((name, repr(value)) for name, value in ctx.config.items()),
        "pipeline": str(recipe.pipeline),
        "name": name_of(recipe.model) if isinstance(content, bytes | mmap) else "",
        "repeated": recipe.repeated,
        "length": recipe.length,
        "compiler": compiler(),
        "plug-ins": others,
    }
    shorter = () if recipe.shorter is None else _parts(recipe.shorter)
    return key_of(KIND, json.dumps(said), *_parts(content), *shorter)


def _is_reproducible_from_text(step: ModulePass) -> bool:
    """Whether the text of a pass describes it completely."""
    ours = type(step).__module__.partition(".")[0] in ("relay", "xdsl")
    fields = dataclasses.fields(step) if dataclasses.is_dataclass(step) else ()
    return ours and all(_plain(getattr(step, field.name)) for field in fields)


def _plain(value: object) -> bool:
    """Whether the text of a value describes it completely; False for a path, which does not say what is in the file."""
    if isinstance(value, str):
        return not os.path.exists(value)
    if is_mapping(value):
        return all(map(_plain, (*value, *value.values())))
    return all(map(_plain, value)) if is_list(value) else isinstance(value, PLAIN)


def _array(value: npt.ArrayLike) -> tuple[str, str, str]:
    array = np.ascontiguousarray(value)
    return str(array.dtype), str(np.shape(value)), sha256(array.reshape(-1).view(np.uint8).data).hexdigest()


def _parts(model: IRModule | bytes | mmap) -> list[str | bytes | mmap]:
    """The parts of a model from which its cache key is computed. For a module these are its text, and what the text
    omits: digests of large weights, and the locations of the ops."""
    if isinstance(model, bytes | mmap):
        return [model]
    from relay.dialects.attributes import WeightAttr
    from relay.dialects.source import words

    parts: list[str | bytes | mmap] = [model.to_text()]
    for op in model.op.walk():
        parts.append(words(op.location))
        for attr in (*op.properties.values(), *op.attributes.values()):
            if isinstance(attr, WeightAttr):
                parts += [attr.label.data, attr.blob.data.digest]
    return parts


@cache
def compiler() -> str:
    """A hash of this compiler: its files (by size and modification time), and the versions of its dependencies."""
    home = Path(__file__).parents[1]
    files = files_of(str(home))
    versions = [f"{name} {version(name)}" for name in ("xdsl", "numpy", "llvmlite")]
    return sha256(
        "\n".join([(home / "__init__.py").read_text(), platform.python_version(), *versions, *files]).encode()
    ).hexdigest()


def files_of(home: str) -> list[str]:
    """A line for each file of a folder, or for one file: name, size and modification time."""
    files: list[str] = []
    for folder, folders, names in os.walk(home) if os.path.isdir(home) else [(os.path.dirname(home), [], [home])]:
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            status = os.stat(path := os.path.join(folder, name))
            files.append(f"{os.path.relpath(path, home)} {status.st_size} {status.st_mtime_ns}")
    return files


def plug_ins() -> list[str] | None:
    """Return lines that identify the installed packages that add legalization patterns or dialects, found without
    importing them: for each entry point, its name, its place and the package's version, then the package's files with
    size and modification time. Return None if this process has registered such patterns or dialects itself, since no
    package identifies them."""
    legalization, dialects = map(sys.modules.get, ("relay.transforms.legalization", "relay.dialects.plug_in"))
    if dialects is not None and dialects.DIALECTS.registered:
        return None
    if legalization is not None and not all(where.startswith("relay.") for _, where in legalization.REGISTRY):
        return None
    found: list[str] = []
    for point in (*installed("relay.legalize"), *installed("relay.dialect")):
        found.append(f"{point.name} {point.value} {'' if point.dist is None else point.dist.version}")
        spec = find_spec(point.module.partition(".")[0])
        for home in () if spec is None else spec.submodule_search_locations or [spec.origin or ""]:
            found += files_of(home)
    return found


def find(
    key: str, content: IRModule | bytes | mmap, build: Callable[[IRModule | bytes], Executable]
) -> Executable | None:
    """The executable in the cache under the key; None if the cache has no entry for it. The cache does not keep source
    texts: when one is requested, `build` compiles the model (`content`, a module or the bytes of a file) again."""
    kept = store()
    if kept is None:
        return None
    own = content if isinstance(content, bytes | mmap) else content.clone()
    rebuilt = cache(lambda: build(bytes(own) if isinstance(own, mmap) else own).library)
    more: Mapping[str, Callable[[], str]] = {}
    if not isinstance(content, bytes | mmap):
        from relay.lowering import externals

        more = externals.sources(content.op)
    return _loaded(kept, key, rebuilt, more)


def _loaded(
    kept: Store, key: str, rebuilt: Callable[[], Library], more: Mapping[str, Callable[[], str]] | None = None
) -> Executable | None:
    """Return the executable that the store keeps under the key; None if the key has no entry, or an unreadable one.
    `rebuilt` compiles the model again; it is called when the executable is asked for a source text that is not stored.
    `more` has functions that return further source texts without compiling, by kind."""
    data = kept.view(key)
    if data is None:
        return None
    try:
        saved = archive.unpack(archive.aligned(data), f"cache entry {key}", here=False)
    except RelayError:
        return None
    device = saved.graph.get("device")
    kinds = SOURCES if device is None else SOURCES_OF_DEVICES[device["kind"]]
    sources = {kind: partial(_text, rebuilt, kind) for kind in kinds} | dict(more or {})
    if device is None:
        files, counts = partial(_files, rebuilt), partial(_profiled, rebuilt)
        library = Library(saved.code, sources, saved.artifacts, files, counts)
    else:
        if device["kind"] == "cuda":
            sources["ptx"] = partial(bytes.decode, saved.code)  # is the code itself
        library = DeviceLibrary(saved.code, saved.graph, sources, saved.artifacts)
    return Executable(saved.graph, library, saved.params, saved.constants, saved.claims)


def _text(rebuilt: Callable[[], Library], kind: str) -> str:
    return rebuilt().sources[kind]()


def _files(rebuilt: Callable[[], Library], name: str, kind: str) -> Mapping[str, bytes]:
    library = rebuilt()
    assert library.export is not None
    return library.export(name, kind)


def _profiled(rebuilt: Callable[[], Library]) -> Mapping[str, Any]:
    library = rebuilt()
    assert library.profiled is not None
    return library.profiled()


def keep(key: str, executable: Executable) -> None:
    """Store the executable under the key, if it contains machine code."""
    kept = store()
    if kept is not None and executable.library.code:
        kept.put(key, *archive.pieces(executable.parts()))


def keeps(executable: Executable) -> bool:
    """Whether the executable can be cached by its build's key: it contains only relay's own code, and no external
    artifacts."""
    return bool(executable.library.code) and not executable.library.artifacts


@dataclasses.dataclass(frozen=True)
class KeyedRequest:
    """A request that consists only of a file's bytes, a target, a level and importer options, with its cache key."""

    key: str
    name: str
    request: Request = dataclasses.field(repr=False, compare=False)


def keyed(request: Request) -> KeyedRequest | None:
    """Return the request with its cache key, computed without importing the compiler. Return None if there is no cache,
    or if such a key cannot describe the build: the request has other arguments (such as a pipeline) or some that
    `build` may reject, a pass context is entered, or this process has registered dialects or legalization patterns."""
    more = (request.params, request.pipeline, request.records, request.external, request.exact, request.maximum)
    if any(part is not None for part in more):
        return None
    model, target, opt_level = request.model, request.target, request.opt_level
    if store() is None or not isinstance(model, str | bytes | os.PathLike) or not isinstance(target, str):
        return None
    if (
        not (opt_level is None or type(opt_level) is int)
        or not _is_options(request.frontend)
        or not _is_outside_of_contexts()
    ):
        return None
    options = sorted((str(name), value) for name, value in (request.frontend or {}).items())
    if not _plain([value for _, value in options]):
        return None
    content = model if isinstance(model, bytes) else content_of(os.fspath(model))
    if not isinstance(content, bytes | mmap):
        return None
    machine = [platform.machine(), sys.platform, sorted(processor.flags()), processor.model()]
    if (others := plug_ins()) is None:
        return None
    name = name_of(model)
    said = [target, opt_level, repr(tuple(options)), machine, compiler(), others, name]
    key = key_of(QUICK, json.dumps(said), content)
    plain = Request(content, target, opt_level=opt_level, frontend=dict(options), progress=False)
    return KeyedRequest(key, name, plain)


def _is_options(value: object) -> bool:
    return isinstance(value, dict | None)


def _is_outside_of_contexts() -> bool:
    """Whether no pass context is entered."""
    passes = sys.modules.get("relay.passes.context")
    if passes is None:
        return True
    ctx = passes.PassContext.current()
    return bool(ctx.is_default) and not ctx.instruments and not ctx.config


def lookup_by_request(keyed: KeyedRequest, build: Callable[[Request, str], Executable]) -> Executable | None:
    """The executable that the cache holds for the request, or None. Under the request's key, the cache stores the key
    of the executable. `build` compiles the model again when a source text (such as LLVM IR) of it is requested."""
    kept = store()
    found = None if kept is None else kept.get(keyed.key)
    if kept is None or found is None:
        return None
    rebuilt = cache(lambda: build(keyed.request, keyed.name).library)
    return _loaded(kept, found.decode(errors="replace"), rebuilt)


def remember_request(keyed: KeyedRequest, kept: str) -> None:
    """Store the key of a build under the key of its request."""
    if (folder := store()) is not None:
        folder.put(keyed.key, kept.encode())
