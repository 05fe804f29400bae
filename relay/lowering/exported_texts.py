"""What stands beside exported code besides its header: a README in Markdown, and a library for CMake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relay.lowering.exported_regions import plain


def cmake(name: str, sources: Sequence[str], objects: Sequence[str], options: Sequence[str] = ()) -> str:
    """A file to `include`: the library `name`, of C sources and objects beside it, with its header and libm."""
    here = "${CMAKE_CURRENT_LIST_DIR}"
    files = "".join(f' "{here}/{source}"' for source in sources)
    linked = "".join(f' "{here}/{each}"' for each in objects)
    kind, reach = ("STATIC", "PUBLIC") if sources else ("INTERFACE", "INTERFACE")
    lines = [
        f"# include({name}.cmake), then target_link_libraries(YOUR_PROGRAM PRIVATE {name})",
        f"add_library({name} {kind}{files})",
        f'target_include_directories({name} {reach} "{here}")',
        f"target_link_libraries({name} {reach}{linked} m)",
        *([f"target_compile_options({name} PRIVATE {' '.join(options)})"] if sources and options else []),
    ]
    return "\n".join(lines) + "\n"


def readme(
    name: str, file: str, graph: Mapping[str, Any], alignment: int, tensors: Sequence[tuple[str, Mapping[str, Any]]]
) -> str:
    """How to link and call `file`, what its tensors are, and how much memory each layer needs."""
    macro = name.upper()
    rows = "".join(
        f"| `{parameter}` | {row['kind']} | {cell(row['name'])} | {row['dtype']} | {list(row['shape'])} | "
        f"{number(row['scale'])} | {'' if row['scale'] is None else row['zero_point']} |\n"
        for parameter, row in tensors
    )
    layers = "".join(
        f"| {row['bytes']} | `{row['kernel']}` | {cell(row['layer'])} |\n" for row in graph.get("layers", ())
    )
    regions = f", `{name}_regions.c`" if graph.get("externals") else ""
    arguments = ", ".join(["arena", *(parameter for parameter, _ in tensors)])
    return f"""# {name}

`{file}`{regions} and `{name}.h` are a neural network in native code for {graph["target"]["triple"]} \
({graph["target"]["cpu"]}), made by relay. Weights are constants in it. Nothing is allocated: the program gives
the arena, which is all the memory that is written, but for the outputs.

| | bytes |
|---|---|
| constants (read-only) | {graph["constants_bytes"]} |
| arena (`{macro}_ARENA_BYTES`) | {graph["arena_bytes"]} |

```c
#include "{name}.h"

static _Alignas({macro}_ARENA_ALIGNMENT) unsigned char arena[{macro}_ARENA_BYTES]; /* a multiple of {alignment} */

/* fill the inputs */
{name}_run({arguments});
```

| argument | kind | name in the model | type | shape | scale | zero point |
|---|---|---|---|---|---|---|
{rows}
A code stands for `scale * (code - zero point)`. Tensors are dense and row-major.

With CMake: `include({name}.cmake)` and `target_link_libraries(YOUR_PROGRAM PRIVATE {name})`; else link `{file}`, and
`-lm` where the linker asks for functions of it.

What each kernel needs of the arena while it runs, in their order:

| bytes | kernel | layer |
|---|---|---|
{layers}"""


def number(scale: float | None) -> str:
    """A scale; nothing where numbers are no codes."""
    return "" if scale is None else f"{scale:.9g}"


def cell(text: str) -> str:
    """A model's own name in a table of Markdown."""
    return plain(text).replace("|", "\\|")
