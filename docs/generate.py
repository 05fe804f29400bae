"""Writes `docs/passes.md` from the passes themselves: `python docs/generate.py`. A test compares the two."""

from __future__ import annotations

import inspect
from pathlib import Path

from xdsl.passes import ModulePass
from xdsl.utils.hints import type_repr

from relay.driver import default_pipeline
from relay.passes.base import Pass, info_of, names_of, why_of
from relay.passes.config import options
from relay.passes.registry import find
from relay.universe import PASSES

PAGE = Path(__file__).parent / "passes.md"
LEVELS = range(5)
HEAD = """# Passes

Written by `python docs/generate.py` from the passes; do not edit.

`relay.build` runs `relay.default_pipeline(target, opt_level)`; `relay-opt --show-pipeline -O2` prints it. A pass runs
from its level on (`PassContext(opt_level=2)` is the default). Level 0 is what correctness needs; the integers are equal
at every level. LLVM's own effort is 0 at level 0, 1 at level 1, and 3 from level 2 on.

"""


def levels() -> list[str]:
    """The table of the default pipeline: where each pass runs, and why it is there."""
    lines = ["| pass | " + " | ".join(map(str, LEVELS)) + " | why |", "|---" * (len(LEVELS) + 2) + "|"]
    at = [[step.name for step in default_pipeline("llvm", level)] for level in LEVELS]
    for step in default_pipeline("llvm", LEVELS[-1]):
        marks = " | ".join("x" if step.name in names else " " for names in at)
        lines.append(f"| [`{step.name}`](#{step.name}) | {marks} | {why_of(step)} |")
    return [*lines, ""]


def properties(classes: list[type[Pass]]) -> list[str]:
    """Which pass establishes, requires and invalidates each property."""
    lines = ["## Properties", "", "A pass's own name is a property too.", ""]
    lines += ["| property | established by | required by | invalidated by |", "|---|---|---|---|"]
    for prop in dict.fromkeys(prop for cls in classes for prop in cls.establishes):
        by = [
            ", ".join(f"`{cls.name}`" for cls in classes if prop in (getattr(cls, what) or ()))
            for what in ("establishes", "requires", "invalidates")
        ]
        lines.append(f"| {prop} | {by[0]} | {by[1]} | {by[2]} |")
    return [*lines, ""]


def describe(cls: type[ModulePass]) -> list[str]:
    """One pass: documentation, names, level, properties, options."""
    info, aliases = info_of(cls()), [name for name in names_of(cls)[1:]]
    lines = [f"## `{cls.name}`", ""]
    if issubclass(cls, Pass):
        lines += [inspect.cleandoc(cls.__doc__ or ""), ""]
    else:
        lines += [f"xDSL's own: {why_of(cls())}.", ""]
    lines.append(f"- also named {', '.join(f'`{alias}`' for alias in aliases)}; from level {info.opt_level}")
    for what, found in (
        ("requires", info.requires),
        ("establishes", info.establishes),
        ("invalidates", info.invalidates),
    ):
        if found:
            lines.append(f"- {what} {', '.join(found)}")
    for name, key in options(cls).items():
        lines.append(f"- option `{name}`: {type_repr(key.type)}, default `{key.default!r}`")
    return [*lines, ""]


def page() -> str:
    """The whole page."""
    classes = [cls for name in PASSES if issubclass(cls := find(name), Pass)]
    foreign = [find(name) for name in ("canonicalize", "cse", "dce")]
    lines = [*levels(), *properties(classes), *(line for cls in (*classes, *foreign) for line in describe(cls))]
    return HEAD + "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
