"""Damaged saved executables: loading one ends in an error of ours, or in what was saved; where the sums are right
and what they are of is not, in an error of ours or in an executable, which is never run: code is trusted."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest

from relay.compile.entry import build
from relay.errors import RelayError
from relay.runtime import archive, container, load
from tests.conftest import Cases
from tests.fuzz.run_cases import run_cases
from tests.numeric.random_graphs import RandomGraph
from tests.unit.test_runtime import stateful

SECONDS = 2.0
"""Of processor time for one file, on a machine that is busy."""
TEXTS = ("graph.json", "constants.safetensors")
TOKEN = re.compile(rb'-?\d+(?:\.\d+)?|"[^"]*"|[][{}:,]|\w+')
VALUES = rb'0 -1 1 64 65536 4294967296 1e999 null true "" [] {} [[ "\u0000" "uint8"'.split() + [b"\xff"]
ONCE_WRONG = (8796, 9092, 14071, 39816)
"""Cases that ended in other errors than ours."""
Parts = dict[str, bytes]


@cache
def seeds() -> tuple[Parts, ...]:
    """Parts of small executables: with states, of codes, of floats, and for a GPU."""
    built = [build(stateful()), *(build(RandomGraph(3, floats=floats, size=2).module()) for floats in (False, True))]
    built.append(build(RandomGraph(5, floats=True, size=1).module(), target="opencl"))
    files = [archive.pack(each.parts()) for each in built]
    return tuple({k: bytes(v) for k, v in container.unpack(memoryview(f), "file").items()} for f in files)


# Damages of a file


def truncate(file: bytes, rng: random.Random) -> bytes:
    return file[: rng.randrange(len(file))]


def set_bytes(file: bytes, rng: random.Random) -> bytes:
    """Anywhere, or in the header and the table."""
    damaged, last = bytearray(file), rng.choice((48, 600, len(file)))
    for _ in range(rng.choice((1, 2, 8, 64))):
        damaged[rng.randrange(min(last, len(file)))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return bytes(damaged)


def cut_out(file: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(file))
    return file[:at] + file[at + rng.choice((1, 8, 64, 4096)) :]


def repeat(file: bytes, rng: random.Random) -> bytes:
    at, size = rng.randrange(len(file)), rng.choice((1, 8, 64, 4096))
    return file[: at + size] + file[at:]


def swap(file: bytes, rng: random.Random) -> bytes:
    """Two blocks change places."""
    damaged, size = bytearray(file), rng.choice((1, 4, 64))
    a, b = (rng.randrange(len(file) - size) for _ in range(2))
    damaged[a : a + size], damaged[b : b + size] = file[b : b + size], file[a : a + size]
    return bytes(damaged)


def text_mode(file: bytes, rng: random.Random) -> bytes:
    """What became of files that were sent as text."""
    return rng.choice((file.replace(b"\r\n", b"\n"), file.replace(b"\n", b"\r\n"), file.decode("latin-1").encode()))


FILE: tuple[Callable[[bytes, random.Random], bytes], ...] = (truncate, set_bytes, set_bytes, cut_out, repeat, swap,
                                                            text_mode)  # fmt: skip


# Damages of a part


def other_token(text: bytes, rng: random.Random) -> bytes:
    """Another token in a token's place: one of the text, or one that is hardly ever right."""
    spans = [match.span() for match in TOKEN.finditer(text)]
    (start, end), (first, last) = rng.choice(spans), rng.choice(spans)
    return text[:start] + rng.choice((text[first:last], rng.choice(VALUES))) + text[end:]


def near_number(text: bytes, rng: random.Random) -> bytes:
    numbers = [match.span() for match in re.finditer(rb"-?\d+", text)]
    start, end = rng.choice(numbers)
    change = rng.choice((-64, -1, 1, 64, 1 << 20, 1 << 62))
    return text[:start] + str(int(text[start:end]) + change).encode() + text[end:]


def forged(parts: Parts, rng: random.Random) -> bytes:
    """A file whose sums are right: a part has other text, or is another file's, or is not there."""
    name = rng.choice(TEXTS)
    match rng.randrange(6):
        case 0:
            return container.pack(parts | {(key := rng.choice([*parts])): rng.choice(seeds()).get(key, b"")})
        case 1:
            return container.pack({key: part for key, part in parts.items() if key != name})
        case _:
            part, size = parts[name], 0
            if name == "constants.safetensors":
                size = 8 + int.from_bytes(part[:8], "little")
            text, rest = (part[8:size], part[size:]) if size else (part, b"")
            for _ in range(rng.choice((1, 1, 2, 4))):
                text = rng.choice((other_token, other_token, near_number))(text, rng)
            if size and rng.randrange(8):
                text += b" " * (-(len(text) + 8) % 64)
            return container.pack(parts | {name: (len(text).to_bytes(8, "little") if size else b"") + text + rest})


def end_of(path: Path, parts: Parts, sums: bool) -> str:
    """How loading ends. What has wrong sums may only be what was saved; of all else, it can be told what it is."""
    try:
        executable = load(path)
    except RelayError as error:
        assert str(error).strip()
        return type(error).__name__
    if not sums:
        again = container.unpack(memoryview(archive.pack(executable.parts())), "file")
        assert {name: bytes(part) for name, part in again.items()} == parts, "is not what was saved"
        return "unharmed"
    assert repr(executable) and executable.inputs is not None and executable.outputs
    return "loaded"


def fuzz(cases: Iterable[int], folder: Path) -> Counter[str]:
    """How each damaged file ended; what must not be is kept."""
    path = folder / "damaged.relay"

    def draw(case: int) -> tuple[Parts, bool]:
        rng = random.Random(case)
        parts = rng.choice(seeds())
        sums = rng.random() < 0.6
        path.write_bytes(forged(parts, rng) if sums else rng.choice(FILE)(container.pack(parts), rng))
        return parts, sums

    def keep(case: int, drawn: object) -> None:
        (folder / f"{case}.relay").write_bytes(path.read_bytes())

    return run_cases(cases, draw, lambda drawn: end_of(path, *drawn), seconds=SECONDS, keep=keep)


def test_damaged_artifacts_are_refused(tmp_path: Path) -> None:
    ends = fuzz([*range(300), *ONCE_WRONG], tmp_path)
    assert ends["Malformed"] and ends["loaded"]


@pytest.mark.fuzz
def test_many_damaged_artifacts_are_refused(tmp_path: Path, cases: Cases) -> None:
    fuzz(cases(30_000), tmp_path)
