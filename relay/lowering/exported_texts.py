"""Writes the files beside exported code: a README in Markdown, and a library for CMake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relay.lowering.c_stream import Parameter, states_of, taken
from relay.lowering.exported_regions import plain
from relay.target import CpuTarget
from relay.target.resolve import CROSS, SHORT

FLOATS = "Functions take floats in registers"
ABIS = {
    "hard": f"{FLOATS} of the unit for floats.",
    "softfp": f"{FLOATS} for integers: programs of `-mfloat-abi=soft` can link it, too. A unit for floats is used.",
    "soft": f"{FLOATS} for integers: programs of `-mfloat-abi=softfp` can link it, too. No unit for floats is used.",
}
"""A sentence for each value of `-mfloat-abi`."""


def float_abi(target: CpuTarget) -> str:
    """Return the value of `-mfloat-abi` (hard, softfp or soft) for a target with 32-bit Arm; empty for other
    machines."""
    if not target.triple.startswith(("arm", "thumb")):
        return ""
    return "hard" if target.floats_in_registers else "softfp" if target.computes_floats else "soft"


def compiler_flags(target: CpuTarget) -> list[str]:
    """Return the flags that make GCC and Clang compile C programs for the target's processor and calling convention.
    They are needed for Arm and RISC-V without an operating system, and empty for other targets, whose compilers use the
    right ones by default."""
    first, *_ = target.triple.split("-")
    if target.has_threads or not first.startswith(("arm", "thumb", "riscv")):
        return []
    if first.startswith("riscv"):
        extensions = "".join(name for name in "imafdcv" if name == "i" or name in target.features)
        return [f"-march=rv{first.removeprefix('riscv')}{extensions}", f"-mabi={target.abi}"]
    stand_ins = [name for name, text in SHORT.items() if text.startswith(f"{first}-none")]
    named = stand_ins[:1] if target.cpu == CROSS[first][0] else [target.cpu]
    return [
        *(["-mthumb"] if first.startswith("thumb") else []),
        *(f"-mcpu={name}" for name in named),
        f"-mfloat-abi={float_abi(target)}",
    ]


def example(name: str, parameters: Sequence[Parameter], arena: str, regions: bool) -> str:
    """Return a C program that declares all arrays and calls `NAME_run`, or, for a model with states, the functions of
    its stream. `arena`: the declaration of the arena, empty if there is none."""
    states, macro, arguments = states_of(parameters), name.upper(), taken(parameters)
    rows = [f"static {each.type} {each.name}[{macro}_{each.name.upper()}_COUNT];" for each in arguments]
    filled = ", ".join(each.name for each in arguments if each.name.startswith("input"))
    read = ", ".join(each.name for each in arguments if not each.name.startswith("input"))
    given = ["&stream"] if states else ["arena"] if arena else []
    call = f"{name}_{'stream_step' if states else 'run'}({', '.join([*given, *(each.name for each in arguments)])})"
    lines = [
        f'#include "{name}.h"',
        *(["#include <stdalign.h>"] if "alignas" in arena else []),
        "",
        *([arena] if arena else []),
        *([f"static {name}_stream stream;"] if states else []),
        *rows,
        "",
        "int main(void) {",
        *([f"  if ({name}_init()) return 1;"] if regions else []),
        *([f"  if ({name}_stream_init(&stream, arena)) return 1;"] if states else []),
        *([f"  /* fill {filled} */"] if filled else []),
        f"  if ({call}) return 1;",
        *([f"  /* read {read} */"] if read else []),
        *([f"  {name}_destroy();"] if regions else []),
        "  return 0;",
        "}",
    ]
    return "\n".join(lines)


def cmake(
    name: str,
    sources: Sequence[str],
    objects: Sequence[str],
    options: Sequence[str] = (),
    flags: Sequence[str] = (),
) -> str:
    """Return a CMake file to `include`: it defines the library `name`, of C sources and objects beside it, with its
    header and libm; `options` are for compiling its sources, `flags` also for programs that use it."""
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
        *(f"target_{kind}_options({name} {reach} {' '.join(flags)})" for kind in ("compile", "link") if flags),
    ]
    return "\n".join(lines) + "\n"


def readme(
    name: str,
    file: str,
    graph: Mapping[str, Any],
    target: CpuTarget,
    tensors: Sequence[tuple[str, Mapping[str, Any]]],
    parameters: Sequence[Parameter],
    calls: Sequence[str] | None,
) -> str:
    """Return a README: how to compile, link and call `file`, a table of its tensors, and the memory of each layer;
    `calls`: the library functions that its code needs, None if unknown."""
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
    arena = f"alignas({macro}_ARENA_ALIGNMENT) unsigned char arena[{macro}_ARENA_BYTES];"
    flags, abi = " ".join(compiler_flags(target)), float_abi(target)
    compiled = f"Compile programs {f'with `{flags}`' if flags else f'for {target.triple}'}."
    if abi:
        compiled += f"\n{ABIS[abi]}"
    if abi in ("hard", "softfp") and flags:
        compiled += " A start-up code has to switch it on."
    listed = ", ".join(f"`{symbol}`" for symbol in calls or ()) or "no function of a library"
    called = "" if calls is None else f" The code calls {listed}."
    return f"""# {name}

`{file}`{regions} and `{name}.h` are a neural network in native code, made by relay, for {target.triple} ({target.cpu}).
Weights are constants in it. Nothing is allocated: the program gives the arena, which is all the memory that is written,
but for the outputs.

| | bytes |
|---|---|
| constants (read-only) | {graph["constants_bytes"]} |
| arena (`{macro}_ARENA_BYTES`) | {graph["arena_bytes"]} |

A whole program:

```c
{example(name, parameters, arena, bool(regions))}
```

{compiled}

With CMake: `include({name}.cmake)` and `target_link_libraries(YOUR_PROGRAM PRIVATE {name})`; else link `{file}`, and
`-lm` where the linker asks for functions of it.{called}

| argument | kind | name in the model | type | shape | scale | zero point |
|---|---|---|---|---|---|---|
{rows}
A code stands for `scale * (code - zero point)`. Tensors are dense and row-major.

What each kernel needs of the arena while it runs, in their order:

| bytes | kernel | layer |
|---|---|---|
{layers}"""


def number(scale: float | None) -> str:
    """Return a scale as text; empty if the tensor is not quantized."""
    return "" if scale is None else f"{scale:.9g}"


def cell(text: str) -> str:
    """Return a name from the model, escaped for a table in Markdown."""
    return plain(text).replace("|", "\\|")
