"""`relay-dialect`: create, test, document and list dialects that other packages add."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from inspect import cleandoc

from relay.dialects import plug_in
from relay.dialects.op import format_of
from relay.dialects.plug_in import DIALECTS, known
from relay.errors import RelayError
from relay.tools.dialect_checks import CHECKS, MLIR_OPT, check
from relay.tools.failure import line_of
from relay.tools.scaffolding import DIALECT
from relay.transforms.legalization import patterns_of


def parser() -> argparse.ArgumentParser:
    """The argument parser."""
    command = argparse.ArgumentParser(
        "relay-dialect", description="Create, test, document and list dialects of other packages."
    )
    actions = command.add_subparsers(dest="action", required=True)
    DIALECT.add_arguments(actions.add_parser("new", help="write a working package that a new dialect can start from"))
    test = actions.add_parser(
        "test", help="check an installed dialect: syntax, error messages, numpy implementation, compiled code"
    )
    test.add_argument("name", help="the dialect's name")
    docs = actions.add_parser("docs", help="print a page on a dialect's ops, patterns and passes")
    docs.add_argument("name", help="the dialect's name")
    actions.add_parser("list", help="list the dialects that installed packages add")
    return command


def listing() -> str:
    """A line for each dialect that an installed package adds, with its number of ops, or its error."""
    lines: list[str] = []
    for name in DIALECTS.names():
        try:
            dialect = plug_in.dialect_of(name)
            lines.append(f"{plug_in.place_of(name)}: {len([*dialect.operations])} ops")
        except RelayError as error:
            lines.append(str(error))
    return "\n".join(lines) or "no installed package has a dialect"


def page(name: str) -> str:
    """The Markdown documentation of a dialect: its ops, types, legalization patterns, passes and imported operators."""
    dialect = plug_in.dialect_of(known(name))
    lines = [f"# {plug_in.place_of(name)}"]
    for op in dialect.operations:
        lines += ["", f"## `{op.name}`", "", cleandoc(op.__doc__ or "")]
        syntax = format_of(op) or getattr(op, "assembly_format", None)
        lines += ["", f"    {op.name} {syntax}"] if syntax else []
    lines += [f"- type `!{each.name}`: {cleandoc(each.__doc__ or '')}" for each in dialect.attributes]
    for row in patterns_of(dialects=[name]):
        lines += ["", f"Pattern {row.name}: `{row.summary}`"]
    for each, factory in plug_in.passes().items():
        if each in plug_in.part(name, "passes"):
            lines += ["", f"Pass `{each}`: {cleandoc(factory().__doc__ or '')}"]
    for format in ("tflite", "onnx"):
        if operators := plug_in.part(name, format):
            lines += ["", f"Operators of {format}: {', '.join(map('`{}`'.format, operators))}"]
    return "\n".join(lines)


def tested(name: str) -> int:
    """Check a dialect and print its faults. Returns the exit status: 1 if it has any, else 0."""
    faults = check(name)
    print("\n".join(faults) or f"{plug_in.place_of(name)}: {', '.join(CHECKS)} are well")
    if shutil.which(MLIR_OPT) is None:
        print(f"not checked: mlir-opt ({MLIR_OPT} is not installed)")
    return 1 if faults else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit status: 0, or 1 for an error or a dialect with faults."""
    chosen = parser().parse_args(arguments)
    try:
        if chosen.action == "test":
            return tested(chosen.name)
        if chosen.action == "new":
            print(DIALECT.report(chosen.name, chosen.into))
        else:
            print(listing() if chosen.action == "list" else page(chosen.name))
    except (RelayError, OSError) as error:
        print(f"error: {line_of(error, 'relay-dialect')}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
