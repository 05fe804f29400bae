"""`relay completion`: prints shell completion scripts."""

from __future__ import annotations

import rich_click as click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print a script that makes a shell complete `relay` and `relay-opt`: source it, or install it for the shell."""
    from relay.tools.relay_opt import main

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(ctx.find_root().command, {}, "relay", "_RELAY_COMPLETE").source())
    main(["--completion", shell])
