"""`python -m relay.validation FILE`: check a saved executable and print the findings."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from relay.errors import RelayError
from relay.validation.certificate import SECONDS, certify, inside
from relay.validation.contraction import BITS


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit status: 0 if nothing is wrong, 1 if something is, 2 if nothing could be
    checked."""
    parser = argparse.ArgumentParser(prog="python -m relay.validation", description=__doc__)
    parser.add_argument("file", help="a file that Executable.save has written")
    parser.add_argument(
        "--bits",
        type=int,
        default=BITS,
        help="random tests of sums miss a wrong coefficient with a probability below 2^-BITS (default: %(default)s)",
    )
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON")
    parser.add_argument("--html", metavar="FILE", help="write the report as a page")
    parser.add_argument(
        "--seconds",
        type=int,
        default=SECONDS,
        help="seconds after which a running kernel counts as wrong (default: %(default)s)",
    )
    parser.add_argument("--first", action="store_true", help="stop at the first kernel that is wrong")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.inside:
        output = os.fdopen(os.dup(1), "w")

        def tell(row: dict[str, Any]) -> None:
            print(json.dumps(row), file=output, flush=True)

        inside(given.file, given.bits, given.seconds, given.first, tell)
        return 0
    try:
        report = certify(given.file, given.bits, given.seconds, given.first)
    except RelayError as error:
        print(error, file=sys.stderr)
        return 1
    for path, text in ((given.json, report.to_json), (given.html, report.to_html)):
        if path:
            Path(path).write_text(text())
    print(report)
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main())
