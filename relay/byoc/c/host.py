"""Writes the C file of an artifact, in which the program is a function. The code that `relay.build` generates calls
this function."""

from __future__ import annotations

from collections.abc import Sequence

from relay.byoc.c import source
from relay.byoc.c.program import Constant, Program, Tensor

OUTSIDE_BYTES = 1024
"""Weights larger than this number of bytes are kept out of the C code, since a C compiler takes seconds per megabyte of
numbers."""

CONTEXT = """/* What the loader hands to a function: an arena, and the constants that lie outside of the code. The first
   caller takes the arena; who comes while it runs makes one of its own, or waits where there is no memory for one. */
typedef struct {
    int32_t busy;
    uint8_t *arena;
    const void *const *constants;
} relay_context;

static uint8_t *relay_take_arena(relay_context *context, size_t size, void **own)
{
    for (;;) {
        *own = NULL;
        if (__atomic_exchange_n(&context->busy, 1, __ATOMIC_ACQUIRE) == 0)
            return context->arena;
        *own = malloc(size);
        if (*own != NULL)
            return *own;
    }
}

static void relay_give_arena(relay_context *context, void *own)
{
    free(own);
    if (own == NULL)
        __atomic_store_n(&context->busy, 0, __ATOMIC_RELEASE);
}
"""


def outside(program: Program) -> list[Constant]:
    """The constants that the executable stores instead of the C code."""
    return [c for c in program.constants.values() if c.array.nbytes > OUTSIDE_BYTES]


def text(program: Program, symbol: str, elsewhere: Sequence[Constant]) -> str:
    """The text of the C file; `elsewhere` are the constants that the code reads from the structure `relay_context`,
    instead of defining them."""
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
    uint8_t *const arena = relay_take_arena(context, {program.arena}, &own);
{source.body(program)}
    relay_give_arena(context, own);
    return 0;
}}
"""
    parts = (
        source.includes(program, "stdlib.h"),
        source.definitions(program, elsewhere),
        CONTEXT,
        f"int32_t {symbol}(void *given, void **tensors);\n",
        function,
        source.long_constants(program, elsewhere),
    )
    return "\n".join(part for part in parts if part)


def pointer(tensor: Tensor, number: int) -> str:
    """The C declaration of a local variable that points to the elements of a tensor, whose address is entry `number` of
    the array `tensors`."""
    type = f"{'const ' if tensor.place == 'input' else ''}{tensor.type.name}"
    return f"{type} *const {tensor.name} = ({type} *)tensors[{number}];"
