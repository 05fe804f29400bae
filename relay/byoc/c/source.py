"""A `Program` as the text of one C file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from textwrap import indent, wrap

import numpy as np

from relay.byoc.c import kernels
from relay.byoc.c.ctype import F32, CType
from relay.byoc.c.program import Constant, Program, Tensor
from relay.dialects.attributes import Array

MATH = re.compile(r"\b(exp|log|tanh|sqrt|round|floor|ceil|fabs)f?\(|\b(INFINITY|NAN)\b")
"""What needs math.h."""

SMALL = 64
"""Numbers of a constant that is defined where it is declared; longer ones are defined at the end of the file."""

BYTES = [str(code) for code in range(256)], [str(code - 256 if code > 127 else code) for code in range(256)]
"""Unsigned and signed codes in decimal."""


def includes(program: Program, *more: str) -> str:
    """The headers that the program needs: no more than memcpy of the library, and math.h where it computes floats."""
    code = "\n".join((*program.kernels.values(), *program.tables.values()))
    wanted = ["stddef.h", "stdint.h", "string.h", *more] + ["math.h"] * bool(MATH.search(code))
    return "".join(f"#include <{header}>\n" for header in sorted(wanted))


def definitions(program: Program, outside: Sequence[Constant] = ()) -> str:
    """Kernels, constants but those `outside`, and tables."""
    constants = [constant for constant in program.constants.values() if constant not in outside]
    declared = "".join(f"{declaration(c)};\n" if is_long(c) else definition(c) for c in constants)
    parts = [prelude(), *program.kernels.values(), declared, *program.tables.values()]
    return "\n".join(part for part in parts if part)


def prelude() -> str:
    """What is assumed of the compiler, checked by it."""
    return kernels.read("prelude")[1].template


def long_constants(program: Program, outside: Sequence[Constant] = ()) -> str:
    """The definitions of the constants that `definitions` only declares."""
    return "\n".join(definition(c) for c in program.constants.values() if c not in outside and is_long(c))


def is_long(constant: Constant) -> bool:
    """Whether its numbers would stand in the way of who reads the code."""
    return constant.array.size > SMALL


def declaration(constant: Constant) -> str:
    """`static const int8_t name[count]`."""
    return f"static const {constant.type.name} {constant.name}[{constant.array.size}]"


def definition(constant: Constant) -> str:
    """The declaration with its numbers, and what it is."""
    dims = "x".join(map(str, constant.array.shape))
    values = numbers(constant.array.reshape(-1), constant.type)
    return f"{declaration(constant)} = {{ /* {plain(constant.label)}: {dims} */\n{values}}};\n"


def numbers(array: Array, type: CType) -> str:
    """The numbers of a flat array, in lines."""
    if type.size == 1:
        words: Iterable[str] = map(BYTES[type.kind == "i"].__getitem__, array.view(np.uint8).tolist())
    else:
        words = map(type.literal, array if type.kind == "f" else array.tolist())
    every = list(words)
    step = 24 if type.size == 1 else 12
    return "".join("    " + ", ".join(every[i : i + step]) + ",\n" for i in range(0, len(every), step))


def float32(value: float) -> str:
    """A literal of `float`."""
    return F32.literal(value)


def body(program: Program) -> str:
    """The steps, after the places of the temporary tensors in `arena`."""
    places = "".join(
        f"    {tensor.type.name} *const {tensor.name} = ({tensor.type.name} *)(void *)(arena + {tensor.offset});\n"
        for tensor in program.temporaries
    )
    steps = "".join(
        (indent(comment(step.comment), "    ") if step.comment else "") + indent(step.text, "    ") + "\n"
        for step in program.steps
    )
    return (places or "    (void)arena;\n") + "\n" + steps


def plain(text: str) -> str:
    """Text that ends no comment, and no line."""
    return text.replace("*/", "* /").replace("/*", "/ *").replace("\\", "/").replace("\n", " ")


def comment(text: str) -> str:
    """A comment, in lines of at most 110 characters."""
    lines = wrap(f"/* {plain(text)} */", 110, subsequent_indent="   ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines) + "\n"


def parameter(tensor: Tensor) -> str:
    """An input or output as a parameter of a function."""
    return f"{'const ' if tensor.place == 'input' else ''}{tensor.type.name} *{tensor.name}"
