"""`relay compare`: compares a model's results with another runtime's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rich_click as click

from relay.errors import InvalidArgument
from relay.tools.command import options


@click.command("compare", cls=options.ModelCommand)
@click.argument("model", type=options.MODEL)
@click.option(
    "--with",
    "reference",
    metavar="litert|onnxruntime|interpreter|FILE",
    help="the reference: a runtime, a model file or a saved executable; litert:FILE runs FILE in LiteRT instead of "
    "MODEL (default: litert for .tflite, onnxruntime for .onnx, else relay's interpreter)",
)
@click.option("--layers", is_flag=True, help="also compare every intermediate tensor of the model")
@click.option(
    "--tolerance",
    type=click.FloatRange(0),
    default=1e-5,
    help="largest allowed float difference, relative to a tensor's largest magnitude (default: 1e-5); integers must be "
    "equal",
)
@click.option("--html", metavar="FILE", help="write the report as an HTML page")
@options.input_options
@options.model_options
@options.JSON
@click.pass_obj
def command(
    manner: options.Manner,
    model: str,
    reference: str | None,
    layers: bool,
    tolerance: float,
    html: str | None,
    as_json: bool,
    **chosen: Any,
) -> int:
    """Compare a model's results in relay and in another runtime on the same inputs; if any differ, show the first
    difference, and exit with code 1."""
    import relay
    from relay.tools.command import inputs as reading

    runtimes = ("litert", "onnxruntime", "interpreter")
    if reference and reference.partition(":")[0] not in runtimes and not Path(reference).exists():
        hint = "known are litert, onnxruntime, interpreter; or give the file of a model, or of a compiled one"
        raise InvalidArgument("--with", f"{reference!r} is neither a runtime nor a file", hint)
    build, rest = options.arguments_of(chosen)
    frontend = build.pop("frontend", {})
    found = relay.compare(
        model,
        reference,
        lambda executable: reading.gather(executable.inputs, rest),
        layers=layers,
        tolerance=tolerance,
        frontend=frontend,
        **build,
        progress=manner.progress,
    )
    if html is not None:
        from relay.files import replace_file
        from relay.viewer.comparison import page

        replace_file(html, page(found, Path(model).name).encode())
    options.show({"model": model, **found.to_json()}, str(found), as_json)
    return 0 if found.equal else 1
