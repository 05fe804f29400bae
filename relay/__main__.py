"""`relay`, and `python -m relay`: one command for all there is; each subcommand is a file of `relay.tools.command`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module


def main(args: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit code: 0; 1 after one line about an error or where results differ; 2 after one
    line about a wrong command line."""
    try:
        import rich_click as _  # noqa: F401  (what the subcommands are written with)
    except ModuleNotFoundError as error:
        from relay.plug_ins import installation

        print(f"relay: the package {error.name} is not installed; {installation('cli')}", file=sys.stderr)
        return 1
    return _run(lambda: import_module("relay.tools.command.main").run(args))


def opt() -> int:
    """`relay-opt`."""
    return _compiler("relay-opt", "relay.tools.relay_opt")


def explore() -> int:
    """`relay-explore`."""
    return _compiler("relay-explore", "relay.tools.relay_explore")


def byoc() -> int:
    """`relay-byoc`."""
    return _compiler("relay-byoc", "relay.tools.relay_byoc")


def dialect() -> int:
    """`relay-dialect`."""
    return _compiler("relay-dialect", "relay.tools.relay_dialect")


def _compiler(name: str, module: str) -> int:
    """Run a command that needs the compiler, or print which package is missing (`pip install --no-deps`)."""
    from relay.plug_ins import lacking

    def command() -> int:
        try:
            main = import_module(module).main
        except ModuleNotFoundError as error:
            print(lacking(name, error), file=sys.stderr)
            return 1
        return main()

    return _run(command)


def _run(command: Callable[[], int]) -> int:
    """Run a command with three standard streams, /dev/null for those that were closed. Returns its exit code, 130 after
    an interrupt."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))
    try:
        return command()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
