"""Native code: a shared object, loaded by the system's loader on first use."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any, cast

from relay.errors import Malformed, Unsupported

_SYSTEM = ctypes.CDLL(None)
_LOCKS = [threading.Lock()]
"""The lock under which this process loads shared objects; the child of a `fork` gets a new one."""


class Library:
    """The compiled code of a model: a shared object (`code`, empty for targets that have none), and the artifacts of
    external compilers by symbol. Functions make the other forms when they are requested: `sources` the source texts,
    `export` the files to export, `profiled` a program that counts time.

    Loading it executes native code, so use only files from a source that you trust.
    """

    def __init__(
        self,
        code: bytes,
        sources: Mapping[str, Callable[[], str]] | None = None,
        artifacts: Mapping[str, bytes] | None = None,
        export: Callable[[str, str], Mapping[str, bytes]] | None = None,
        profiled: Callable[[], Mapping[str, Any]] | None = None,
    ):
        self.code = code
        self.export = export
        self.profiled = profiled
        self.artifacts = dict(artifacts or {})
        self.sources = dict(sources or {})
        self._loaded: ctypes.CDLL | None = None

    def function(self, symbol: str) -> Callable[[int], None]:
        """The function of this name, taking one address; the library must outlive its use.

        Raises Malformed if the code is damaged, or has no such function.
        """
        with _LOCKS[0]:
            if self._loaded is None:
                try:
                    file = os.memfd_create("relay")
                except OSError as error:
                    hint = "each executable that is in use has one file open (ulimit -n)"
                    raise Unsupported("object code", f"cannot be loaded: {error.strerror}", hint) from None
                try:
                    self._loaded = _load(self.code, file)
                except Malformed:
                    os.close(file)
                    raise
                weakref.finalize(self, _unload, self._loaded, file).atexit = False
        try:
            address = ctypes.cast(self._loaded[symbol], ctypes.c_void_p).value
        except (AttributeError, ValueError):  # the latter: a name that no symbol can have
            raise Malformed("object code", f"has no function {symbol!a}") from None
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address or 0)


def _load(code: bytes, file: int) -> ctypes.CDLL:
    """Load the shared object by the system's loader, through a file in memory."""
    try:
        with open(file, "wb", closefd=False) as writer:
            writer.write(code)
        return ctypes.CDLL(f"/proc/self/fd/{file}", mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        raise Malformed("object code", f"cannot be loaded: {error}") from None


def _unload(loaded: ctypes.CDLL, file: int) -> None:
    """Unload the shared object. The file is closed last: while it is open, no other library gets its name."""
    _SYSTEM.dlclose(ctypes.c_void_p(cast(int, vars(loaded)["_handle"])))
    os.close(file)


def _unlock() -> None:
    _LOCKS[0] = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)
