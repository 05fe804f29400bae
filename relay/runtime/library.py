"""Object code, linked into this process when it is first needed."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from relay.errors import Malformed

_NAMES = count()
_LOCK = threading.Lock()
_LINKER: list[Any] = []


class Library:
    """Relocatable object code, the artifacts of external compilers by symbol, and the texts the code was made from:
    each is written when it is asked for.

    Native code: trust it like a program.
    """

    def __init__(
        self,
        code: bytes,
        sources: Mapping[str, Callable[[], str]] | None = None,
        artifacts: Mapping[str, bytes] | None = None,
    ):
        self.code = code
        self.artifacts = dict(artifacts or {})
        self.sources = dict(sources or {})
        self._tracker: object | None = None
        self._functions: dict[str, Callable[[int], None]] = {}

    def function(self, symbol: str) -> Callable[[int], None]:
        """The function of this name, taking one address. Linked once; the library must outlive its use.

        Raises Malformed if the code is damaged, or has no such function.
        """
        with _LOCK:
            if symbol not in self._functions:
                import llvmlite.binding as llvm

                if not _LINKER:
                    llvm.initialize_native_target()
                    llvm.initialize_native_asmprinter()
                    _LINKER.append(llvm.create_lljit_compiler(use_jit_link=False))
                linker = _LINKER[0]
                builder = llvm.JITLibraryBuilder().add_object_img(self.code).add_current_process().export_symbol(symbol)
                try:
                    tracker = builder.link(linker, f"relay_{next(_NAMES)}")
                except RuntimeError as error:
                    raise Malformed("object code", f"cannot be linked: {error}") from None
                self._tracker = tracker
                self._functions[symbol] = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(tracker[symbol])
            return self._functions[symbol]
