"""Builds that need not be done again: the executable of a model that was built before in the same way.

A key holds all that a build depends on: the model, the passes with their options, the context, the target, and the
compiler itself. Where that is not known (passes or patterns of other packages, passes that the module asks for or that
read files, instruments that want to see passes run, external compilers), nothing is looked up and nothing is kept.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
from collections.abc import Callable, Mapping
from functools import cache, cached_property, partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TypeGuard

import numpy as np
import numpy.typing as npt
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

import relay
from relay.dialects.attributes import WeightAttr
from relay.errors import RelayError
from relay.lowering.store import key_of, store
from relay.lowering.targets import CpuTarget
from relay.module import REQUESTS, IRModule
from relay.passes import PassContext, Pipeline
from relay.runtime import Executable, Library, archive
from relay.runtime.memory import aligned_bytes
from relay.transforms.legalization import registered

KIND = "build"
SOURCES = ("mlir", "ll", "asm")
PLAIN = (str, int, float, bool, type(None))


def content_of(model: IRModule | str | bytes) -> IRModule | bytes | None:
    """The model, or the bytes of its file; None if they cannot be read."""
    if not isinstance(model, str):
        return model
    try:
        return Path(model).read_bytes()
    except (OSError, ValueError):
        return None


def key(
    content: IRModule | bytes,
    frontend: Mapping[str, object],
    params: Mapping[str, npt.ArrayLike],
    target: CpuTarget,
    ctx: PassContext,
    pipeline: Pipeline,
) -> str | None:
    """What a build is kept under; None if it depends on what cannot be told."""
    if store() is None or ctx.instruments or not all(map(_told, pipeline)) or not _plain((*ctx.config.values(),)):
        return None
    if not _plain((*frontend.values(),)):
        return None
    if not all(point.value.startswith("relay.") for point in registered()):
        return None
    if isinstance(content, IRModule) and (
        REQUESTS in content.op.attributes
        or any(isinstance(op, FuncOp) and "compiler" in op.attributes for op in content.op.body.block.ops)
    ):
        return None
    said = {
        "frontend": sorted((name, repr(value)) for name, value in frontend.items()),
        "params": sorted((name, *_array(value)) for name, value in params.items()),
        "target": [target.triple, target.cpu, sorted(target.features)],
        "context": [ctx.opt_level, sorted(ctx.required_pass), sorted(ctx.disabled_pass)],
        "config": sorted((name, repr(value)) for name, value in ctx.config.items()),
        "pipeline": str(pipeline),
        "compiler": compiler(),
    }
    return key_of(KIND, json.dumps(said), *_parts(content))


def _told(step: ModulePass) -> bool:
    """Whether the text of a pass says all about it."""
    ours = type(step).__module__.partition(".")[0] in ("relay", "xdsl")
    fields = dataclasses.fields(step) if dataclasses.is_dataclass(step) else ()
    return ours and all(_plain(getattr(step, field.name)) for field in fields)


def _plain(value: object) -> bool:
    """Whether the text of a value says all about it; that of a path does not tell what is in the file."""
    if isinstance(value, str):
        return not os.path.exists(value)
    return all(map(_plain, value)) if _is_tuple(value) else isinstance(value, PLAIN)


def _is_tuple(value: object) -> TypeGuard[tuple[object, ...]]:
    return isinstance(value, tuple)


def _array(value: npt.ArrayLike) -> tuple[str, str, str]:
    array = np.ascontiguousarray(value)
    return str(array.dtype), str(np.shape(value)), sha256(array.reshape(-1).view(np.uint8).data).hexdigest()


def _parts(model: IRModule | bytes) -> list[str | bytes]:
    """All of the model: a module's text says only a part of its weights."""
    if isinstance(model, bytes):
        return [model]
    parts: list[str | bytes] = [model.to_text()]
    for op in model.op.walk():
        for attr in (*op.properties.values(), *op.attributes.values()):
            if isinstance(attr, WeightAttr):
                parts += [attr.label.data, attr.blob.data.digest]
    return parts


@cache
def compiler() -> str:
    """This compiler: its files (by size and time of change), and the versions of what it uses."""
    home = Path(relay.__file__).parent
    files: list[str] = []
    for folder, folders, names in os.walk(home):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            status = os.stat(path := os.path.join(folder, name))
            files.append(f"{os.path.relpath(path, home)} {status.st_size} {status.st_mtime_ns}")
    versions = [f"{name} {version(name)}" for name in ("xdsl", "numpy", "llvmlite")]
    return sha256("\n".join([relay.__version__, platform.python_version(), *versions, *files]).encode()).hexdigest()


class Again:
    """The texts of an executable that was not built this time: it is built when one is asked for."""

    def __init__(self, build: Callable[[IRModule | bytes], Executable], content: IRModule | bytes):
        self.build, self.content = build, content.clone() if isinstance(content, IRModule) else content

    @cached_property
    def library(self) -> Library:
        """That of the executable."""
        return self.build(self.content).library

    def text(self, kind: str) -> str:
        """The source of this kind."""
        return self.library.sources[kind]()

    def export(self, name: str) -> Mapping[str, bytes]:
        """The files of an object for C."""
        assert self.library.export is not None
        return self.library.export(name)


def find(key: str, content: IRModule | bytes, build: Callable[[IRModule | bytes], Executable]) -> Executable | None:
    """The executable kept under the key; `build` makes it anew, for those who ask for its sources."""
    kept = store()
    data = None if kept is None else kept.get(key)
    if data is None:
        return None
    memory = aligned_bytes(len(data))
    memory[:] = np.frombuffer(data, np.uint8)
    try:
        saved = archive.unpack(memory, f"cache entry {key}", here=False)
    except RelayError:
        return None
    again = Again(build, content)
    sources = {kind: partial(again.text, kind) for kind in SOURCES}
    return Executable(saved.graph, Library(saved.code, sources, export=again.export), saved.params, saved.constants)


def keep(key: str, executable: Executable) -> None:
    """Keep the executable under the key; what external compilers made a part of is not kept."""
    kept = store()
    library = executable.library
    if kept is not None and library.code and not library.artifacts:
        kept.put(key, archive.pack(executable.parts()))
