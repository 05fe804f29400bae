"""Damaged MLIR text: reading, verifying and passes end in a module or in an error of ours, without a traceback."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from relay.compile.pipeline import default_pipeline
from relay.errors import RelayError
from relay.module import IRModule
from relay.passes import PassContext, Sequential
from relay.universe import PASSES
from tests.conftest import Cases
from tests.fuzz.run_cases import run_cases
from tests.numeric.random_graphs import RandomGraph

FILECHECK = Path(__file__).parents[1] / "filecheck"
FAILING = ("errors", "not-built")
LONGEST = 12_000
"""Characters of a text that is damaged: longer ones take too long to parse."""
SECONDS = 20.0
"""Of processor time for one text, on a machine that is busy."""
OUTSIDE = {"print-ir", "print-choices", "gpu-module-to-binary", "quantize", "quantize-calibrate", "compile-external"}
"""Passes that print, call other programs, or need data."""
TOKEN = re.compile(r"[%@#!^]?[A-Za-z_][\w.$-]*|-?\d+(?:\.\d+(?:e[-+]?\d+)?)?|\"[^\"\n]*\"|->|[^\s\w]")


def cases_of(path: Path) -> list[str]:
    """The parts of a test, without its comments."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("//") or line.startswith("// -----")]
    return [part.strip() for part in "\n".join(lines).split("// -----") if part.strip()]


@cache
def texts() -> tuple[str, ...]:
    """Texts of the tests, and a small module at every level."""
    found = [text for path in sorted(FILECHECK.rglob("*.mlir")) for text in cases_of(path)]
    module = RandomGraph(3, floats=False, size=1).module()
    found.append(module.to_text())
    for step in default_pipeline():
        module = Sequential([step])(module)
        found.append(module.to_text())
    return tuple(text for text in found if len(text) < LONGEST)


def spans(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in TOKEN.finditer(text)]


def replace_token(text: str, rng: random.Random) -> str:
    """Another token of some text in a token's place."""
    start, end = rng.choice(spans(text))
    other = rng.choice((text, rng.choice(texts())))
    first, last = rng.choice(spans(other))
    return text[:start] + other[first:last] + text[end:]


def drop_token(text: str, rng: random.Random) -> str:
    start, end = rng.choice(spans(text))
    return text[:start] + text[end:]


def repeat_tokens(text: str, rng: random.Random) -> str:
    found = spans(text)
    first = rng.randrange(len(found))
    last = min(first + rng.randrange(1, 12), len(found) - 1)
    part = text[found[first][0] : found[last][1]]
    return text[: found[last][1]] + " " + part + text[found[last][1] :]


def change_number(text: str, rng: random.Random) -> str:
    numbers = [match.span() for match in re.finditer(r"-?\d+", text)]
    if not numbers:
        return drop_token(text, rng)
    start, end = rng.choice(numbers)
    near = int(text[start:end]) + rng.choice((-1, 1))
    values = (
        0,
        -1,
        1,
        near,
        2**31,
        -(2**31),
        2**63,
        10**30,
        1 << 20,
        "?",
        "1.5",
        "0xFF",
        "nan",
        "true",
        "f32",
        "i8",
        "ui8",
    )
    return f"{text[:start]}{rng.choice(values)}{text[end:]}"


def change_type(text: str, rng: random.Random) -> str:
    types = [match.span() for match in re.finditer(r"\b(?:[su]?i\d+|f\d+|index|tensor<[^<>]*>|memref<[^<>]*>)", text)]
    if not types:
        return drop_token(text, rng)
    start, end = rng.choice(types)
    values = ("i1", "i8", "ui8", "si8", "i32", "i64", "f16", "f32", "f64", "index", "tensor<*xf32>", "tensor<0xf32>",
              "tensor<?x?xi8>", "tensor<4xi8>", "none", "()", "tuple<i32>", "memref<4xf32>")  # fmt: skip
    return text[:start] + rng.choice(values) + text[end:]


def swap_lines(text: str, rng: random.Random) -> str:
    lines = text.splitlines()
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return "\n".join(lines)


def drop_line(text: str, rng: random.Random) -> str:
    lines = text.splitlines()
    del lines[rng.randrange(len(lines))]
    return "\n".join(lines)


def set_character(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text))
    return text[:at] + rng.choice("{}()<>[]%@#:,=\"'\\\x00é0-") + text[at + rng.randrange(2) :]


def truncate(text: str, rng: random.Random) -> str:
    return text[: rng.randrange(len(text))]


DAMAGES: tuple[Callable[[str, random.Random], str], ...] = (
    replace_token, replace_token, drop_token, repeat_tokens, change_number, change_number, change_type, change_type,
    swap_lines, drop_line, set_character, truncate,
)  # fmt: skip


@cache
def steps() -> dict[str, ModulePass]:
    """Every pass of ours by name, with what options it has by default."""
    named = {step.name: step for step in default_pipeline()}
    for name, load in PASSES.items():
        if name in OUTSIDE or name in named:
            continue
        try:
            named[name] = load()()
        except TypeError:
            continue
    return named


def end_of(text: str, rng: random.Random) -> str:
    """Read the text and run passes on it: a few by chance, or those of a build."""
    try:
        module = IRModule.parse(text)
        chosen = list(default_pipeline()) if rng.random() < 0.5 else rng.choices(list(steps().values()), k=3)
        with PassContext(opt_level=4):
            Sequential(chosen)(module).verify()
    except RelayError as error:
        assert str(error).strip()
        return type(error).__name__
    except DiagnosticException:
        return "xDSL's diagnostic"
    return "passed"


def damaged(case: int) -> tuple[str, random.Random]:
    rng = random.Random(case)
    text = rng.choice(texts())
    for _ in range(rng.choice((1, 1, 2, 3))):
        text = rng.choice(DAMAGES)(text, rng) if TOKEN.search(text) else text
    return text, rng


def fuzz(cases: Iterable[int], folder: Path) -> Counter[str]:
    """How each damaged text ended; what must not be is kept."""

    def keep(case: int, drawn: tuple[str, random.Random]) -> None:
        (folder / f"{case}.mlir").write_text(drawn[0])

    return run_cases(cases, damaged, lambda drawn: end_of(*drawn), seconds=SECONDS, keep=keep)


ONCE_WRONG = (416, 15296, 19310)
"""Cases that once ended in other errors: a value that nothing computes, a fill of memory, a place of few indices."""


def test_damaged_texts_end_in_errors_of_ours(tmp_path: Path) -> None:
    ends = fuzz([*range(60), *ONCE_WRONG], tmp_path)
    assert ends["Malformed"]


@pytest.mark.fuzz
def test_many_damaged_texts_end_in_errors_of_ours(tmp_path: Path, cases: Cases) -> None:
    fuzz(cases(5000), tmp_path)
