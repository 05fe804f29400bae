"""Writes C functions that keep a model's states between inferences: `NAME_stream_init`, `_step`, `_reset`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Parameter(NamedTuple):
    """A parameter of the model's C function."""

    name: str
    """The parameter's name, `input_0` ..., `output_0` ...; the macro NAME_INPUT_0_COUNT is the number of its
    elements."""
    type: str
    """The C type of an element."""
    kind: str
    """The kind of tensor: "input", "output" or "state"."""
    tensor: str
    """The tensor's name in the model; the input and output of a state have the same name."""
    initial: str | None = None
    """The name of a state's initial value in C; None for zeros."""
    in_place: bool = False
    """For the input of a state: whether the model can update the state in place, which a null input requests."""


def states_of(parameters: Sequence[Parameter]) -> dict[str, tuple[Parameter, Parameter]]:
    """Return the states of a stream, as pairs of input and output, by the name of the input."""
    outputs = {each.tensor: each for each in parameters if each.name.startswith("output") and each.kind == "state"}
    return {
        each.name: (each, outputs[each.tensor])
        for each in parameters
        if each.name.startswith("input") and each.kind == "state" and each.tensor in outputs
    }


def taken(parameters: Sequence[Parameter]) -> list[Parameter]:
    """Return the parameters of a step: all except the states."""
    kept = {each.name for pair in states_of(parameters).values() for each in pair}
    return [each for each in parameters if each.name not in kept]


def declarations(name: str, run: str, alignment: int, parameters: Sequence[Parameter]) -> str:
    """Return C code for the header of a model with states: a struct that holds the states of a stream, and static
    functions that initialize it, reset it, and make one inference by a call of `run(arena, inputs..., outputs...)`.
    Empty if the model has no states."""
    states = states_of(parameters)
    if not states:
        return ""
    macro, written = name.upper(), {output.name: input for input, output in states.values()}
    fields = "".join(
        f"    {each.type} {field}[{1 if each.in_place else 2}][{macro}_{field.upper()}_COUNT];\n"
        for field, (each, _) in states.items()
    )
    starts = "".join(
        f"    for (i = 0; i < {macro}_{field.upper()}_COUNT; ++i)\n"
        f"        stream->{field}[0][i] = {f'{each.initial}[i]' if each.initial else 0};\n"
        for field, (each, _) in states.items()
    )
    takes = "".join(
        f", {'const ' if each.name.startswith('input') else ''}{each.type} *{each.name}" for each in taken(parameters)
    )
    gives = "".join(
        f", {'0' if each.in_place else f'stream->{each.name}[turn]'}" if each.name in states
        else f", stream->{input.name}[{'0' if input.in_place else '1 - turn'}]" if (input := written.get(each.name))
        else f", {each.name}"
        for each in parameters
    )  # fmt: skip
    return f"""
/* A stream: runs of which each starts with the states that the one before it left. A step reads one of the two copies
   of each state and writes the other; of a state with one copy it writes what is new. */
typedef struct {{
    void *arena;
    int turn; /* the copies that hold the states */
{fields}}} {name}_stream;

/* The states as at the start. */
static inline void {name}_stream_reset({name}_stream *stream)
{{
    int32_t i;
    stream->turn = 0;
{starts}}}

/* A stream at its start. Its steps run in this arena, which streams may share if they do not run at the same time.
   Returns 0, or -1 if the arena is not aligned. */
static inline int32_t {name}_stream_init({name}_stream *stream, void *arena)
{{
    stream->arena = arena;
    {name}_stream_reset(stream);
    return (uintptr_t)arena % {alignment} == 0 ? 0 : -1;
}}

/* One run. Returns what {run} does; the states stay as they were unless that is 0. */
static inline int32_t {name}_stream_step({name}_stream *stream{takes})
{{
    const int turn = stream->turn;
    const int32_t status = {run}(stream->arena{gives});
    if (status == 0)
        stream->turn = 1 - turn;
    return status;
}}
"""
