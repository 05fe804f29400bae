"""`relay inspect`: shows what a model or a saved executable contains."""

from __future__ import annotations

from typing import Any

import rich_click as click

from relay.tools.command import options


@click.command("inspect", cls=options.ModelCommand)
@click.argument("file", type=options.MODEL, metavar="FILE|MODEL")
@options.import_options
@click.option("--memory", metavar="TARGET", help="also build for this target, and show the memory of each layer")
@options.JSON
@click.pass_obj
def command(manner: options.Manner, file: str, memory: str | None, as_json: bool, **chosen: Any) -> None:
    """Show a model's inputs, outputs, weights and operators with their multiply-accumulate counts, or the contents of a
    saved executable; exit code 1 if the model cannot be imported."""
    build, _ = options.arguments_of(chosen)
    if options.is_saved(file):
        executable = options.executable(file, build, manner)
        options.show(executable.to_json(), str(executable), as_json)
        return
    from relay.viewer.summary import summary

    found, layers = summary(options.module(file, build)), list[dict[str, Any]]()
    if memory is not None:
        executable = options.executable(file, {**build, "target": memory}, manner)
        layers = executable.graph.get("layers", layers)
    lines = [["", "memory", "kernel", "layer"]]
    lines += [["", str(row["bytes"]), row["kernel"], row["layer"]] for row in layers]
    table = f"\n\n{options.rows(lines, frozenset({1}))}" if layers else ""
    told = {"layers": layers} if layers else {}
    options.show({"file": file, **found.to_json(), **told}, f"{found}{table}", as_json)
