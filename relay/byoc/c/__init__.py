"""`c`: an external compiler to readable C99, and the export of whole models as C for any machine (docs/c_compiler.md).

`emit` is the table of ops, `rows` what each becomes, `kernels` the C they call; `compiler` and `loader` are the two
plug-in halves, `export` writes a model as files.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from relay.byoc.c.compiler import CCompiler
    from relay.byoc.c.export import export_c

_HOME = {"CCompiler": "relay.byoc.c.compiler", "export_c": "relay.byoc.c.export"}


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'relay.byoc.c' has no attribute {name!r}")


__all__ = ["CCompiler", "export_c"]
