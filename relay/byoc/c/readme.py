"""Writes `name.md`, the README beside an exported model."""

from __future__ import annotations

from collections.abc import Sequence

from relay.byoc.c.model import Model
from relay.byoc.c.source import includes
from relay.lowering.c_stream import Parameter, states_of
from relay.lowering.exported_texts import example


def text(model: Model, parameters: Sequence[Parameter]) -> str:
    """The text of the readme: the files, requirements of the machine, and how to compile and call them."""
    name, macro = model.name, model.macro
    rows = "\n".join(
        f"| `{tensor.name}` | {info.kind} | `{info.name}` | `{tensor.type.name}` | {list(tensor.shape)} "
        f"| {'' if info.scale is None else f'{info.scale:.9g}'} | {'' if info.scale is None else info.zero_point} |"
        for tensor, info in model.rows
    )
    floats = "math.h" in includes(model.program)
    library = "memcpy, and of math.h what float ops need" if floats else "memcpy"
    started, regions = "nothing to initialise, no allocation", ""
    if model.regions.functions:
        started = f"no allocation but that of the devices, which `{name}_init` starts"
        rows_of_regions = "\n".join(
            f"| {number} | `{made.symbol}` | {made.compiler} | `{made.device}_init`, `_execute`, `_destroy` |"
            for number, made in enumerate(model.regions.functions, 1)
        )
        regions = f"""
Parts of the model run on devices. `{name}_regions.c` has what their compilers made; link it, and the libraries that
have these functions:

| region | name | compiler | functions |
|---|---|---|---|
{rows_of_regions}

Call `{name}_init()` once before the first run and `{name}_destroy()` after the last. `{name}_init` and the run
return 0, or the number of the region that failed; `{name}_regions[number - 1].status` is the status that its device
returned.
"""
    states = states_of(parameters)
    arena = f"static double arena[{macro}_ARENA_BYTES / sizeof(double) + 1];" if states else ""
    program = example(name, parameters, arena, bool(model.regions.functions))
    return f"""# {name}

`{name}.c` and `{name}.h` are a neural network in C99, made by relay. The only library functions are {library} (a
compiler may make memmove and memset of loops); there is
{started} and no global state but the arena of `{name}_run`.
{regions}
| | bytes |
|---|---|
| constants (read-only) | {model.weights} |
| arena (`{macro}_ARENA_BYTES`) | {model.arena} |

```c
int {name}_run({model.parameters});
int {name}_run_in(void *arena, {model.parameters});
```

Both return 0 if nothing fails. `{name}_run` works in a static arena: one call at a time; compile with
`-D{macro}_NO_STATIC_ARENA` to leave it out. `{name}_run_in` works in yours, aligned to 8 bytes,
and is reentrant; it returns -1 if the arena is not aligned. Tensors are dense and row-major; inputs are only read, and
nothing that is written may overlap anything else.
`{name}_inputs` and `{name}_outputs` tell the same as this table:

| argument | kind | name in the model | type | shape | scale | zero point |
|---|---|---|---|---|---|---|
{rows}

A code stands for `scale * (code - zero point)`. A state is given as an input and comes back as an output of the same
name; `{name}_initial_N` is what input N starts with. For a model with states the header has `{name}_stream_init`,
`{name}_stream_step` and `{name}_stream_reset`, which keep them from one run to the next.

Compile with `-std=c99 -O2 -ffp-contract=off` (the last keeps each float operation a rounding of its own). Integers are
those of the operators' formulas on any machine with two's complement integers and arithmetic right shifts; the file
checks both when it is compiled.

```c
{program}
```
"""
