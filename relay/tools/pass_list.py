"""Passes as text: names, documentation, options. Ours come first, by what they are about."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from relay.passes.documentation import Documented, documented
from relay.passes.info import FOREIGN
from relay.passes.registry import Factory

GROUPS = {
    "relay.transforms": "models",
    "relay.quantize": "quantization",
    "relay.byoc": "external compilers",
    "relay.lowering": "lowering",
    "relay.lowering.gpu": "GPUs",
}
"""What passes of a package are about; of those within another, the inner one."""


def grouped(passes: Mapping[str, Factory]) -> dict[str, list[Documented]]:
    """The passes by what they are about; xDSL's own, and what cannot be imported, last."""
    found: dict[str, list[Documented]] = {title: [] for title in GROUPS.values()} | {"plug-ins": [], "xDSL": []}
    for row in documented(passes):
        inside = [package for package in GROUPS if f"{row.module}.".startswith(f"{package}.")]
        title = GROUPS[max(inside, key=len)] if inside else "plug-ins" if row.ours else "xDSL"
        found[title].append(row)
    return {title: rows for title, rows in found.items() if rows}


def list_passes(passes: Mapping[str, Factory]) -> None:
    """Print each pass, the first sentence of its documentation, and the options of ours."""
    width = max(map(len, passes))
    for title, rows in grouped(passes).items():
        print(f"{title}:")
        for row in rows:
            text = textwrap.wrap(row.summary, 100, break_on_hyphens=False) or [""]
            for name, line in zip((row.name, *(len(text) - 1) * [""]), text, strict=True):
                print(f"  {name:{width}}  {line}".rstrip())
            for line in row.options:
                print(f"  {'':{width}}    {line}")


def list_patterns(target: str) -> None:
    """Print the patterns of `legalize`: what each makes of what, and what it chooses for a target."""
    from relay.target import resolve  # here: other uses of relay-opt start without them
    from relay.transforms.legalization import patterns_of

    rows = patterns_of(resolve(target))
    width = max(len(f"{row.dialect} {row.name}") for row in rows)
    for row in rows:
        print(f"{row.dialect} {row.name}".ljust(width), row.summary, sep="  ")
        if row.choice:
            print(" " * width, f"for {target}: {row.choice}", sep="  ")


def names_of_passes(passes: Mapping[str, Factory]) -> str:
    """The names by what they are about, for `--help`."""
    lines = ["passes (--list-passes says what they do, and names those of xDSL):"]
    for title, rows in grouped(passes).items():
        shown = [row.name for row in rows if title != "xDSL" or row.name in FOREIGN]
        text = f"{title}: {', '.join(shown)}{' ...' if len(shown) < len(rows) else ''}"
        lines += textwrap.wrap(text, 100, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    return "\n".join(lines) + "\n"
