"""`c`: an external compiler to readable C99, and the export of whole models as C for any machine (docs/c_compiler.md).

`emit` lowers a function to a C program, `source` prints it; `compiler` and `loader` are the two halves of the plug-in,
`export` writes a model as files.
"""

from __future__ import annotations

from relay.doors import door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relay.byoc.c.compiler import CCompiler
    from relay.byoc.c.export import export_c


# Written by `python docs/generate.py`; do not edit what follows: it is made of the imports above.
__getattr__, __dir__ = door(__name__, {
    "relay.byoc.c.compiler": "CCompiler",
    "relay.byoc.c.export": "export_c",
})  # fmt: skip

__all__ = [
    "CCompiler", "export_c",
]  # fmt: skip
