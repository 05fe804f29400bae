"""Subcommands that run another tool and pass it all arguments that follow."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout, suppress
from importlib import import_module

import rich_click as click
from click.shell_completion import CompletionItem

OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")


class Forwarded(click.RichCommand):
    """A subcommand that runs another tool. Shell completion offers file names and the options that the other tool's
    help lists."""

    module: str

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        if not incomplete.startswith("-"):
            return [CompletionItem(incomplete, type="file")]
        text = io.StringIO()
        with redirect_stdout(text), suppress(SystemExit):
            import_module(self.module).main(["--help"])
        found = dict.fromkeys(OPTION.findall(text.getvalue()))
        return [CompletionItem(name) for name in found if name.startswith(incomplete)]


def forwarded(name: str, module: str, help: str) -> click.Command:
    """Make a subcommand that runs the function `main` of a module."""

    @click.command(
        name,
        cls=Forwarded,
        help=help,
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    )
    @click.argument("args", nargs=-1, type=click.UNPROCESSED)
    def command(args: tuple[str, ...]) -> int:
        return import_module(module).main(list(args))

    command.module = module
    return command
