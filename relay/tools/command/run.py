"""`relay run`: runs a model once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rich_click as click

from relay.errors import InvalidArgument
from relay.tools.command import options


@click.command("run", cls=options.ModelCommand)
@click.argument("file", type=options.MODEL, metavar="FILE|MODEL")
@options.input_options
@click.option("--outputs", metavar="FILE.npz", help="write the outputs to FILE.npz, by name")
@click.option(
    "--dequantize", is_flag=True, help="show real numbers, scale * (value - zero point), instead of quantized values"
)
@click.option(
    "--top",
    type=click.IntRange(1),
    metavar="N",
    help="show the N largest elements of each output, or of each row of a batch",
)
@click.option("--labels", type=options.MODEL, metavar="FILE", help="with --top: a file with one class name per line")
@options.model_options
@options.JSON
@click.pass_obj
def command(manner: options.Manner, file: str, as_json: bool, **chosen: Any) -> None:
    """Run a saved executable, or a model, once, and show its outputs."""
    from relay.tools.command import inputs as reading

    build, rest = options.arguments_of(chosen)
    if rest["labels"] and not rest["top"]:
        raise InvalidArgument("--labels", "names the classes that --top shows", "add --top 5")
    executable = options.executable(file, build, manner)
    results: Any = executable.run(**reading.gather(executable.inputs, rest))
    named = {
        spec.name: spec.dequantize(array) if rest["dequantize"] else array
        for spec, array in zip(executable.outputs, results if len(executable.outputs) > 1 else [results], strict=True)
    }
    if rest["outputs"]:
        from relay.files import replace_file
        from relay.runtime.arrays import npz_of

        replace_file(rest["outputs"], npz_of(named))
    labels = Path(rest["labels"]).read_text().splitlines() if rest["labels"] else []
    rows = {name: best(array, rest["top"], labels) for name, array in named.items()} if rest["top"] else {}
    if as_json:
        told = {name: {"dtype": str(a.dtype), "shape": list(a.shape)} for name, a in named.items()}
        for name, array in named.items():
            told[name] |= {"top": rows[name]} if rows else {} if rest["outputs"] else {"values": array.tolist()}
        options.show(told, "", True)
        return
    for name, array in named.items():
        click.echo(f"{name} {array.dtype}{list(array.shape)}")
        if rows:
            columns = ["row"] * (bool(rows[name] and rows[name][-1]["row"])) + ["place", "label", "value"]
            click.echo(options.rows([[str(row[column]) for column in columns] for row in rows[name]]))
        elif not rest["outputs"]:
            click.echo(str(array))


def best(array: Any, count: int, labels: list[str]) -> list[dict[str, Any]]:
    """The indices, labels and values of the `count` largest elements of each row, the lower index first among equal
    ones. An array with two axes has its first axis as rows; any other array is one row."""

    import numpy as np

    found: list[dict[str, Any]] = []
    for number, row in enumerate(array if array.ndim == 2 else array.reshape(1, -1)):
        for place in map(int, np.argsort(-row.astype(np.float64), kind="stable")[:count]):
            label = labels[place] if place < len(labels) else ""
            found.append({"row": number, "place": place, "label": label, "value": row[place].item()})
    return found
