"""The command `relay`: its group of subcommands, errors printed as one line, and exit codes."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

import rich_click as click

from relay import __version__
from relay.errors import InvalidArgument, RelayError
from relay.plug_ins import lacking
from relay.tools.command import options

COMMANDS = (
    "inspect",
    "compile",
    "run",
    "bench",
    "profile",
    "compare",
    "quantize",
    "tune",
    "certify",
    "explore",
    "opt",
    "cache",
    "completion",
)
"""The subcommands in the order of the help; each is a module of this package with an attribute `command`."""


class Commands(click.RichGroup):
    """A group that imports a subcommand's module only when the subcommand is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"relay.tools.command.{cmd_name}").command
        return command


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="relay")
@click.option("-q", "--quiet", is_flag=True, help="print results only: no notes and no progress")
@click.option("-v", "--verbose", is_flag=True, help="show the Python traceback of an error")
@click.option("--progress/--no-progress", default=None, help="show the progress of long work (default: on a terminal)")
@click.pass_context
def relay(ctx: click.Context, quiet: bool, verbose: bool, progress: bool | None) -> None:
    """Compile, run, measure and compare models, with integer results equal to the reference runtime's.

    To begin: `relay compile model.tflite -o model.relay`, then `relay run model.relay --input image.png --top 5`. Exit
    codes, unless a command's help says otherwise: 0 for success; 1 for an error, or if compared results differ; 2 for a
    wrong command line.
    """
    ctx.obj = options.Manner(quiet, False if quiet and progress is None else progress)
    if verbose:
        os.environ["RELAY_TRACEBACK"] = "1"


def run(args: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit code: 0; 1 for an error; 2 for a wrong command line; 130 after an
    interrupt."""
    try:
        code: object = relay.main(args, prog_name="relay", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        ctx = error.ctx if isinstance(error, click.UsageError) else None
        name = "relay" if ctx is None else ctx.command_path
        said = " ".join(error.format_message().split()).removesuffix(".")
        print(f"{name}: {said}; see {name} --help", file=sys.stderr)
        return error.exit_code
    except (click.exceptions.Exit, click.Abort) as end:
        return end.exit_code if isinstance(end, click.exceptions.Exit) else 130
    except SystemExit as end:  # click exits when there are no arguments, or after shell completion
        return end.code if isinstance(end.code, int) else 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if os.environ.get("RELAY_TRACEBACK") == "1":
            traceback.print_exc()
        sys.stdout.flush()
        print(line_of(error), file=sys.stderr)
        return 2 if isinstance(error, InvalidArgument) and error.where.startswith("-") else 1


def line_of(error: Exception) -> str:
    """The line that reports an error; errors other than RelayError are formatted by `relay.tools.failure`, if it can be
    imported."""
    if isinstance(error, RelayError) and "\n" not in str(error):
        return str(error)
    try:
        from relay.tools.failure import line_of as worded
    except ModuleNotFoundError as missing:
        return lacking("relay", missing)
    return worded(error, "relay")
