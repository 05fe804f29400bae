"""Prints a `Program` as one C file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from textwrap import indent, shorten, wrap

import numpy as np

from relay.byoc.c.ctype import CType
from relay.byoc.c.program import Constant, Program, Tensor
from relay.dialects.attributes import Array
from relay.lowering.c.expressions import LIBRARY

MATH = re.compile(rf"\b({'|'.join(LIBRARY.values())})f?\(|\b(INFINITY|NAN|signbit)\b")
"""Matches code that needs math.h."""

PRELUDE = """/* Two things that C99 leaves to the compiler: both hold on every two's complement machine in use. */
typedef char relay_shifts_right_arithmetically[(-1 >> 1) == -1 ? 1 : -1];
typedef char relay_converts_modulo_a_power_of_two[(int32_t)0xFFFFFFFFu == -1 ? 1 : -1];
"""
"""Compile-time checks of properties of the C compiler that the code relies on."""

SMALL = 64
"""The maximum number of elements of a constant that is defined at its declaration; longer ones are defined at the end
of the file."""

BYTES = [str(code) for code in range(256)], [str(code - 256 if code > 127 else code) for code in range(256)]
"""The decimal texts of unsigned and of signed bytes, by unsigned value."""


def includes(program: Program, *more: str) -> str:
    """The #include lines that the program needs: of the C library only memcpy and, if floats are computed, math.h."""
    code = "\n".join(program.kernels.values())
    finite = all(np.isfinite(constant.array).all() for constant in program.constants.values())
    wanted = ["stddef.h", "stdint.h", "string.h", *more] + ["math.h"] * (not finite or bool(MATH.search(code)))
    return "".join(f"#include <{header}>\n" for header in sorted(wanted))


def definitions(program: Program, outside: Sequence[Constant] = ()) -> str:
    """The kernels, and the constants except those in `outside`, which the executable stores."""
    constants = [constant for constant in program.constants.values() if constant not in outside]
    declared = "".join(f"{declaration(c)};\n" if is_long(c) else definition(c) for c in constants)
    parts = [PRELUDE, *map(tidy, program.kernels.values()), declared]
    return "\n".join(part for part in parts if part)


def long_constants(program: Program, outside: Sequence[Constant] = ()) -> str:
    """The C definitions of the large constants, which the function `definitions` only declares, without those in
    `outside`, which the executable stores."""
    return "\n".join(definition(c) for c in program.constants.values() if c not in outside and is_long(c))


def is_long(constant: Constant) -> bool:
    """Whether a constant is defined at the end of the file, so that it does not hinder reading the code."""
    return constant.array.size > SMALL


def declaration(constant: Constant) -> str:
    """The declaration of a constant, such as `static const int8_t name[count]`."""
    return f"static const {constant.type.name} {constant.name}[{constant.array.size}]"


def definition(constant: Constant) -> str:
    """The definition of a constant, with its shape and label in a comment."""
    dims = "x".join(map(str, constant.array.shape))
    values = numbers(constant.array.reshape(-1), constant.type)
    label = shorten(plain(constant.label), 100, placeholder="...")
    return f"/* {dims}: {label} */\n{declaration(constant)} = {{\n{values}}};\n"


def numbers(array: Array, type: CType) -> str:
    """The elements of a flat array as initializers, in lines."""
    if type.size == 1:
        words: Iterable[str] = map(BYTES[type.kind == "i"].__getitem__, array.view(np.uint8).tolist())
    else:
        words = map(type.literal, array if type.kind == "f" else array.tolist())
    every = list(words)
    step = 20 if type.size == 1 else 9
    return "".join("    " + ", ".join(every[i : i + step]) + ",\n" for i in range(0, len(every), step))


def body(program: Program) -> str:
    """The body of the function: pointers to the tensors in `arena`, then the steps."""
    places = "".join(
        f"    {tensor.type.name} *const {tensor.name} = ({tensor.type.name} *)(void *)(arena + {tensor.offset});\n"
        for tensor in program.temporaries
    )
    steps = "".join(
        (indent(comment(step.comment), "    ") if step.comment else "") + indent(statements(step.text), "    ")
        for step in program.steps
    )
    return (places or "    (void)arena;\n") + "\n" + steps


def plain(text: str) -> str:
    """The text made safe for a C comment on one line."""
    return text.replace("*/", "* /").replace("/*", "/ *").replace("\\", "/").replace("\n", " ")


def statements(text: str) -> str:
    """The C statements, each on a line of its own; long ones are folded."""
    return "".join("\n".join(folded(line, "    ")) + "\n" for line in text.splitlines())


SIGNATURE = re.compile(r"^static [^\n{;]*\([^{};]*\)$", re.M)
"""Matches the head of a function definition."""


def tidy(code: str) -> str:
    """The code with long lines folded, and heads of functions broken between parameters."""
    lines: list[str] = []
    for line in SIGNATURE.sub(head, code).splitlines():
        margin = " " * (len(line) - len(line.lstrip()))
        rest = "   " if line.lstrip().startswith("/*") else "    "
        lines += [margin + part for part in folded(line.strip(), rest)] if len(line) > 118 else [line]
    return "\n".join(lines) + "\n"


def head(match: re.Match[str]) -> str:
    """The head of a function, folded into lines."""
    name, _, parameters = " ".join(match[0].split()).partition("(")
    unbroken = ", ".join(parameter.replace(" ", "\xa0") for parameter in parameters.split(", "))
    return "\n".join(folded(f"{name}({unbroken}", "    ")).replace("\xa0", " ")


def folded(text: str, margin: str) -> list[str]:
    """The text in lines of at most 110 characters, all but the first indented by `margin`."""
    return wrap(text, 110, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False)


def comment(text: str) -> str:
    """A C comment in lines of at most 110 characters."""
    return "\n".join(folded(f"/* {plain(text)} */", "   ")) + "\n"


def parameter(tensor: Tensor) -> str:
    """An input or output as a parameter declaration."""
    return f"{'const ' if tensor.place == 'input' else ''}{tensor.type.name} *{tensor.name}"
