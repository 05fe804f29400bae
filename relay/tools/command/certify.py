"""`relay certify`: checks the machine code of a saved executable."""

from __future__ import annotations

import json
from pathlib import Path

import rich_click as click

from relay.tools.command import options


@click.command("certify")
@click.argument("file", type=click.Path(exists=True, dir_okay=False), metavar="FILE")
@click.option(
    "--bits",
    type=click.IntRange(1, 256),
    default=64,
    help="run so many random tests that an error is missed with a probability below 2^-BITS (default: 64)",
)
@click.option("--first", is_flag=True, help="stop at the first kernel that is wrong")
@click.option("--html", type=click.Path(dir_okay=False), metavar="FILE", help="write the report as an HTML page")
@options.JSON
def command(file: str, bits: int, first: bool, html: str | None, as_json: bool) -> int:
    """Check that each kernel of a saved executable computes, in machine code, the formula that the file states for it;
    exit code 1 if a kernel is wrong, 2 if nothing could be checked."""
    from relay.validation import certify

    report = certify(file, bits=bits, first=first)
    if html is not None:
        Path(html).write_text(report.to_html())
    options.show(json.loads(report.to_json()), str(report), as_json)
    return report.exit_status
