"""The C file behind an artifact: a program as a function that `relay.build`'s code calls."""

from __future__ import annotations

from collections.abc import Sequence

from relay.byoc.c import kernels, source
from relay.byoc.c.program import Constant, Program, Tensor

OUTSIDE_BYTES = 1024
"""Weights above this size lie outside of the code: a C compiler takes seconds for a megabyte of numbers."""


def outside(program: Program) -> list[Constant]:
    """The constants that the executable keeps."""
    return [c for c in program.constants.values() if c.weight and c.array.nbytes > OUTSIDE_BYTES]


def text(program: Program, symbol: str, elsewhere: Sequence[Constant]) -> tuple[str, int]:
    """The file, and the bytes of the arena that its function works in."""
    arena = max(program.plan(), 1)
    context = kernels.read("context")[1].template
    constants = "".join(
        f"    const {c.type.name} *const {c.name} = (const {c.type.name} *)context->constants[{number}]; /* "
        f"{source.plain(c.label)} */\n"
        for number, c in enumerate(elsewhere)
    )
    tensors = [*program.inputs, *program.outputs]
    arguments = "".join(f"    {pointer(tensor, number)}\n" for number, tensor in enumerate(tensors) if tensor.used)
    function = f"""int32_t {symbol}(void *given, void **tensors)
{{
    relay_context *const context = (relay_context *)given;
{constants}{arguments}    void *own;
    uint8_t *const arena = relay_take_arena(context, {arena}, &own);
{source.body(program)}
    relay_give_arena(context, own);
    return 0;
}}
"""
    parts = (
        source.includes(program, "stdlib.h"),
        source.definitions(program, elsewhere),
        context,
        f"int32_t {symbol}(void *given, void **tensors);\n",
        function,
        source.long_constants(program, elsewhere),
    )
    return "\n".join(part for part in parts if part), arena


def pointer(tensor: Tensor, number: int) -> str:
    """A local variable for an argument."""
    type = f"{'const ' if tensor.place == 'input' else ''}{tensor.type.name}"
    return f"{type} *const {tensor.name} = ({type} *)tensors[{number}];"
