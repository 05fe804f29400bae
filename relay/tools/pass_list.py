"""Text listings of passes: names, documentation, options. Relay's passes come first, grouped by topic."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from relay.passes.documentation import documented
from relay.passes.info import FOREIGN
from relay.passes.registry import Factory

GROUPS = {
    "relay.transforms": "models",
    "relay.quantize": "quantization",
    "relay.byoc": "external compilers",
    "relay.lowering": "lowering",
    "relay.lowering.gpu": "GPUs",
}
"""The group title by package; a pass belongs to the innermost package listed here that contains its module."""


def grouped(passes: Mapping[str, Factory]) -> dict[str, dict[str, Factory]]:
    """The passes by group title, sorted by name, empty groups left out; passes of plug-ins and xDSL's own come last.
    No pass is imported."""
    found: dict[str, dict[str, Factory]] = {title: {} for title in GROUPS.values()} | {"plug-ins": {}, "xDSL": {}}
    for name, factory in sorted(passes.items()):
        module = f"{factory.__module__}."
        inside = [package for package in GROUPS if module.startswith(f"{package}.")]
        title = GROUPS[max(inside, key=len)] if inside else "xDSL" if module.startswith("xdsl.") else "plug-ins"
        found[title][name] = factory
    return {title: group for title, group in found.items() if group}


def list_passes(passes: Mapping[str, Factory]) -> None:
    """Print each pass with the first sentence of its documentation, and relay's passes with their options and the
    sentences that explain these."""
    width = max(map(len, passes))
    for title, group in grouped(passes).items():
        print(f"{title}:")
        for row in documented(group):
            text = textwrap.wrap(row.summary, 100, break_on_hyphens=False) or [""]
            for name, line in zip((row.name, *(len(text) - 1) * [""]), text, strict=True):
                print(f"  {name:{width}}  {line}".rstrip())
            explained = textwrap.wrap(" ".join(row.explanations), 96, break_on_hyphens=False)
            for line in (*row.options, *explained):
                print(f"  {'':{width}}    {line}")


def list_patterns(target: str) -> None:
    """Print the rewrite patterns of `legalize`: for each pattern, the ops before and after it and, where it has several
    forms, the form that it chooses for the target."""
    # imported here so that other uses of relay-opt start without loading targets and patterns
    from relay.target import resolve
    from relay.transforms.legalization import patterns_of

    rows = patterns_of(resolve(target))
    width = max(len(f"{row.dialect} {row.name}") for row in rows)
    for row in rows:
        print(f"{row.dialect} {row.name}".ljust(width), row.summary, sep="  ")
        if row.choice:
            print(" " * width, f"for {target}: {row.choice}", sep="  ")


def names_of_passes(passes: Mapping[str, Factory]) -> str:
    """The pass names by group as text, for `--help`."""
    lines = ["passes (--list-passes prints what each pass does, xDSL's included):"]
    for title, group in grouped(passes).items():
        shown = [name for name in group if title != "xDSL" or name in FOREIGN]
        text = f"{title}: {', '.join(shown)}{' ...' if len(shown) < len(group) else ''}"
        lines += textwrap.wrap(text, 100, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    return "\n".join(lines) + "\n"
