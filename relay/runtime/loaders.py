"""Loaders: functions that turn an external compiler's artifact into a callable, registered by the compiler's name.

A loader is a function `load(artifact, symbol, params, inputs, outputs)` of a module that imports nothing of the
compiler. It is registered by an entry point of the group `relay.byoc.runtime`, or by `register_loader`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast
from weakref import finalize

import numpy as np

from relay.errors import Malformed, RelayError, Unsupported, near
from relay.plug_ins import REPAIR, PlugIns, load_point
from relay.runtime.memory import Array, Form

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

OURS: dict[str, str] = {
    "c": "relay.byoc.c.loader:load",
    "litert": "relay.byoc.xnnpack.loader:load_reference",
    "onednn": "relay.byoc.onednn.loader:Session",
    "onnxruntime": "relay.byoc.onnxruntime.loader:Session",
    "systolic": "relay.byoc.systolic.loader:Device",
    "xnnpack": "relay.byoc.xnnpack.loader:load",
}
"""The loaders of this package, which need no installation."""


@dataclass(frozen=True)
class Native:
    """A C function `int32_t f(void *context, void **tensors)`: the addresses of the inputs, then of the outputs. It
    returns 0, or the status with which it failed: the run then calls no more functions and raises a RelayError that
    names this one and the status, with `message(status)` if that is given.

    It may be called by several threads at once, each with tensors of its own. Inputs must not be written; an output
    overlaps no other tensor. A tensor starts at a multiple of `alignment` bytes: tensors in the arena always do, and
    arrays of the user are copied if they do not. `keep` is an object that stays referenced as long as the executable.
    """

    address: int
    context: int = 0
    keep: object = None
    alignment: int = 64
    message: Callable[[int], str] | None = None


Run = Callable[[Sequence[Array], Sequence[Array]], None]
"""A function in Python: it reads the inputs (read-only) and fills the outputs, arrays that are valid during the call
only. It returns None: a result that it returns instead would be lost, and is an error. Several threads may call it at
the same time: a function that does not support that must use a lock. If it raises, `run` raises a RelayError that names
the function, with the exception as its `__cause__`."""

Loader = Callable[[bytes, str, Mapping[str, Array], Sequence[Form], Sequence[Form]], Native | Run]

_Loader = TypeVar("_Loader", bound=Callable[..., object])

VERSIONS = "relay_versions"
LOADERS: PlugIns[Loader] = PlugIns("loader", "relay.byoc.runtime", OURS)
"""The known loaders; a package names its own by an entry point: `name = "package.module:function"`."""


def register_loader(name: str, load: Loader) -> None:
    """Register a loader in this process, in place of any other of this name. Packages use an entry point.

    Warns if it hides another loader; a function that is defined again, as in notebooks, replaces the old one.
    """
    LOADERS.register(name, load)


def accepts(*versions: str) -> Callable[[_Loader], _Loader]:
    """Decorate a loader with the versions of its compiler whose artifacts it accepts. Without this, it gets artifacts
    of all versions."""

    def mark(load: _Loader) -> _Loader:
        setattr(load, VERSIONS, versions)
        return load

    return mark


def find(name: str, where: str, requirement: str = "") -> Loader:
    """The loader of this name: the last one registered, else relay's, else a package's. Warns if it hides another of
    this name. `requirement` is the package that the user must install if the loader is missing; the error names it.

    Raises Unsupported if there is no such loader, or it cannot be loaded.
    """
    hint = f"pip install '{requirement}'" if requirement else "install the package that has it"
    if name in LOADERS.registered:
        return LOADERS.registered[name]
    if point := LOADERS.chosen(name):
        return _loaded(point, where, hint)
    if found := near(name, LOADERS.names()):
        hint += f"; there is {' and '.join(found)}"
    raise Unsupported(where, f"was compiled by '{name}', whose loader is not installed", hint)


def _loaded(point: EntryPoint, where: str, hint: str) -> Loader:
    found = load_point(point, where, f"the loader of '{point.name}' ", hint)
    if not callable(found):
        raise Unsupported(where, f"{point.value} is no loader", REPAIR)
    return cast(Loader, found)


def load(
    compiler: str,
    version: str,
    symbol: str,
    artifact: bytes,
    params: Mapping[str, Array],
    inputs: Sequence[Form],
    outputs: Sequence[Form],
    requirement: str = "",
) -> Native | Run:
    """Load an artifact by its compiler's loader.

    Raises Unsupported if the loader is not installed, or does not take artifacts of this version of the compiler;
    Malformed if it refuses the artifact."""
    where = f"external function {symbol}"
    loader = find(compiler, where, requirement)
    versions = cast(object, getattr(loader, VERSIONS, None))
    if isinstance(versions, tuple) and version not in versions:
        known = ", ".join(map(str, cast(tuple[object, ...], versions)))
        what = f"was compiled by version {version} of '{compiler}'; the one installed takes {known}"
        raise Unsupported(where, what, "build the model again, or install that version")
    try:
        loaded = loader(artifact, symbol, params, inputs, outputs)
    except RelayError:
        raise
    except Exception as error:
        raise Malformed(where, f"cannot be loaded by '{compiler}': {error}", "build the model again") from error
    if isinstance(loaded, Native):
        whole = [loaded.address, loaded.context, loaded.alignment]
        if not all(isinstance(cast(object, number), int) for number in whole) or loaded.address <= 0:
            raise Malformed(where, f"the loader of '{compiler}' gave {loaded!r}", "a Native holds addresses")
    elif not callable(loaded):
        raise Malformed(where, f"the loader of '{compiler}' gave {loaded!r}", "it gives a Native or a callable")
    return loaded


def open_device(
    library: ctypes.CDLL, prefix: str, artifact: bytes, symbol: str, params: Mapping[str, Array], alignment: int = 64
) -> Native:
    """Open a function of a vendor's C library, whose names start with `prefix` and whose interface is:

        int32_t PREFIX_init(const void *artifact, uint64_t size, const void *const *constants, void **state);
        int32_t PREFIX_execute(void *state, void **tensors);
        void PREFIX_destroy(void *state);
        const char *PREFIX_message(void *state, int32_t status);

    `init` gets the artifact and the constants of `Artifact.params` in the order of their names, which both live as long
    as the state; `execute` the addresses of inputs and outputs, and may be called by several threads; `destroy`
    releases the resources of `init`, when the executable is deleted. Status 0 is success. Any other status raises a
    RelayError with the function's name and the text of `message`; after a failed `init`, `message` gets the state that
    `init` stored, perhaps null.

    Raises Malformed if the library has no such functions, RelayError if `init` fails.
    """
    where = f"external function {symbol}"
    try:
        init, execute, destroy, text = (
            getattr(library, f"{prefix}_{name}") for name in ("init", "execute", "destroy", "message")
        )
    except AttributeError as error:
        raise Malformed(where, f"its library has not all functions of a device: {error}") from None
    text.restype, text.argtypes = ctypes.c_char_p, [ctypes.c_void_p, ctypes.c_int32]
    init.restype, destroy.restype, destroy.argtypes = ctypes.c_int32, None, [ctypes.c_void_p]
    constants = [np.require(params[name], requirements=["C", "A"]) for name in sorted(params)]
    table = (ctypes.c_void_p * max(len(constants), 1))(*(array.ctypes.data for array in constants))
    data, state = ctypes.create_string_buffer(artifact, max(len(artifact), 1)), ctypes.c_void_p()

    def message(status: int) -> str:
        found = text(state, status)
        return found.decode(errors="replace") if found else ""

    if status := int(init(data, ctypes.c_uint64(len(artifact)), table, ctypes.byref(state))):
        raise RelayError(where, f"cannot be loaded: {prefix}_init failed with status {status}: {message(status)}")
    device = Device((library, data, constants, table))
    finalize(device, destroy, state.value)
    address = ctypes.cast(execute, ctypes.c_void_p).value or 0
    return Native(address, state.value or 0, device, alignment, message)


@dataclass(eq=False)
class Device:
    """The objects that must stay referenced as long as the state of a vendor's library (`PREFIX_init`) is in use."""

    parts: object
