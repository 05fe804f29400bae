"""`relay inspect`."""

from __future__ import annotations

from typing import Any

import rich_click as click

from relay.tools.command import options


@click.command("inspect", cls=options.ModelCommand)
@click.argument("file", type=options.MODEL, metavar="FILE|MODEL")
@options.import_options
@options.JSON
@click.pass_obj
def command(manner: options.Manner, file: str, as_json: bool, **chosen: Any) -> None:
    """Show inputs, outputs, operators with their work, and weights; exit code 1 for what cannot be imported."""
    build, _ = options.arguments_of(chosen)
    if options.is_saved(file):
        executable = options.executable(file, build, manner)
        options.show(executable.to_json(), str(executable), as_json)
        return
    from relay.viewer.summary import summary

    found = summary(options.module(file, build))
    options.show({"file": file, **found.to_json()}, str(found), as_json)
