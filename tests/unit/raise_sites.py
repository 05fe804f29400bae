"""Which places of the code that report an error have a test that makes them do so.

A site is a call by which the code reports an error; it is reached when an error is made while it is on the stack.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from xdsl.utils.exceptions import ParseError, VerifyException

from relay.errors import RelayError

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, order=True)
class Site:
    """The lines of a file on which one error is reported."""

    path: str
    first: int
    last: int

    def __str__(self) -> str:
        lines = (ROOT / self.path).read_text().splitlines()[self.first - 1 : self.last]
        return f"{self.path}:{self.first}: {' '.join(line.strip() for line in lines)}"


def sites(folder: str, calls: Sequence[str], raised: Sequence[str]) -> set[Site]:
    """Where files of the folder call one of `calls`, or raise what one of `raised` makes."""
    found: set[Site] = set()
    for path in sorted((ROOT / folder).rglob("*.py")):
        name = str(path.relative_to(ROOT))
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and called(node) in calls:
                found.add(Site(name, node.lineno, node.end_lineno or node.lineno))
            elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and called(node.exc) in raised:
                found.add(Site(name, node.lineno, node.end_lineno or node.lineno))
    return found


def called(call: ast.Call) -> str:
    """The last name of what is called."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


@contextmanager
def recorded(wanted: set[Site]) -> Generator[set[Site]]:
    """Collects the sites that are on the stack when an error is made."""
    reached: set[Site] = set()
    by_file: dict[str, list[Site]] = {}
    for site in wanted:
        by_file.setdefault(str(ROOT / site.path), []).append(site)

    def watch(cls: type[BaseException], patch: pytest.MonkeyPatch) -> None:
        made: Callable[..., None] = cls.__init__

        def init(self: BaseException, *args: Any, **kwargs: Any) -> None:
            frame: FrameType | None = inspect.currentframe()
            while frame is not None:
                line = frame.f_lineno
                here = by_file.get(frame.f_code.co_filename, ())
                reached.update(site for site in here if site.first <= line <= site.last)
                frame = frame.f_back
            made(self, *args, **kwargs)

        patch.setattr(cls, "__init__", init)

    with pytest.MonkeyPatch.context() as patch:
        for cls in (RelayError, VerifyException, ParseError):
            watch(cls, patch)
        yield reached


def told(missing: set[Site], count: int) -> str:
    """What a test says of sites without a case."""
    return "\n".join([f"{len(missing)} of {count} messages have no case:", *map(str, sorted(missing))])


def cases_of(test: Callable[..., object]) -> list[tuple[Any, ...]]:
    """The arguments of a parametrized test's cases."""
    marks: list[pytest.Mark] = vars(test)["pytestmark"]
    (found,) = [mark.args[1] for mark in marks if mark.name == "parametrize"]
    return [case if isinstance(case, tuple) else (case,) for case in found]
