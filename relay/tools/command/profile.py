"""`relay profile`: shows the time of each kernel."""

from __future__ import annotations

from typing import Any

import rich_click as click

from relay.tools.command import options


@click.command("profile", cls=options.ModelCommand)
@click.argument("model", type=options.MODEL)
@options.input_options
@click.option("--seconds", type=click.FloatRange(0), default=1.0, help="seconds of timed runs (default: 1)")
@click.option("--trace", metavar="FILE", help="write a trace of one run for chrome://tracing or ui.perfetto.dev")
@click.option("--html", metavar="FILE", help="write the table as an HTML page")
@options.model_options
@options.JSON
@click.pass_obj
def command(manner: options.Manner, model: str, as_json: bool, **chosen: Any) -> None:
    """Show the time of each kernel of a model, and which of the model's operators the kernel computes."""
    from relay.tools.command import inputs as reading

    build, rest = options.arguments_of(chosen)
    executable = options.executable(model, build, manner)
    found = executable.profile(seconds=rest["seconds"], **reading.gather(executable.inputs, rest))
    if rest["trace"]:
        found.save_trace(rest["trace"])
    if rest["html"]:
        from html import escape
        from pathlib import Path

        from relay.files import replace_file

        title = f"Profile of {escape(Path(model).name)}"
        style = ":root{color-scheme:light dark;font:14px system-ui,sans-serif}body{margin:2em auto;max-width:80em;"
        style += "padding:0 1em}td,th{padding:.2em .4em;text-align:left;vertical-align:top}meter{width:3em}"
        style += "@media(max-width:800px){tr{display:flex;flex-wrap:wrap;padding-top:.4em}td,th{flex:0 0 4em}"
        style += ":nth-child(2){flex-basis:7.5em}:nth-child(6){flex:1}:nth-child(7){flex:0 0 100%}}"  # operators below
        page = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{style}</style>'
        replace_file(rest["html"], f"{page}<h1>{title}</h1>{found.to_html()}</html>".encode())
    options.show({"model": model, **found.to_json()}, str(found), as_json)
