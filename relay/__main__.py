"""`relay`, and `python -m relay`: one command for all there is; each subcommand is a file of `relay.tools.command`."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(args: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit code: 0; 1 after one line about an error or where results differ; 2 after one
    line about a wrong command line."""
    try:
        import rich_click as _  # noqa: F401  (what the subcommands are written with)
    except ModuleNotFoundError as error:
        from relay.plug_ins import installation

        print(f"relay: the package {error.name} is not installed; {installation('cli')}", file=sys.stderr)
        return 1
    from relay.tools.command.main import run

    return run(args)


if __name__ == "__main__":
    sys.exit(main())
