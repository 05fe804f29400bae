"""`relay quantize`: converts a float model to 8-bit integers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from relay.errors import InvalidArgument
from relay.tools.command import options

if TYPE_CHECKING:
    from relay.module import IRModule


@click.command("quantize", cls=options.ModelCommand)
@click.argument("model", type=options.MODEL)
@click.option(
    "--calibration",
    required=True,
    type=click.Path(exists=True),
    metavar="DIR|FILE.npz",
    help="calibration samples: a folder of .npz files, or one .npz file whose arrays have a sample per row",
)
@click.option(
    "-o", "--output", required=True, metavar="FILE", help="file to write: .mlir (and .safetensors beside it), or .relay"
)
@click.option(
    "--method",
    default="min-max",
    metavar="NAME",
    help="how value ranges are chosen: min-max (default), moving-average, percentile, kl or mse",
)
@click.option("--report", metavar="FILE.svg|.json", help="write the error of each layer against the float model")
@options.model_options
@options.JSON
@click.pass_obj
def command(manner: options.Manner, model: str, output: str, as_json: bool, **chosen: Any) -> None:
    """Convert a float model to 8-bit integers, calibrated with samples."""
    import relay
    from relay.quantize import Quantize

    build, rest = options.arguments_of(chosen)
    if Path(output).suffix not in (".mlir", ".relay"):
        raise InvalidArgument("--output", f"{output} is neither .mlir nor .relay", "its suffix says what to write")
    if (report := rest["report"]) and Path(report).suffix not in (".svg", ".json"):
        raise InvalidArgument("--report", f"{report} is neither .svg nor .json", "its suffix says what to write")
    if output.endswith(".mlir") and (more := sorted(set(build) - {"frontend", "batch"})):
        hint = f"leave out {', '.join(more)}, or write a .relay file"
        raise InvalidArgument("--output", f"{output} is text that is not compiled", hint)
    module: IRModule = options.module(model, build)
    samples = samples_of(rest["calibration"], module)
    quantised = Quantize(calibration=samples, method=rest["method"])(module)
    found = relay.quantize.report(module, quantised, samples)
    if output.endswith(".mlir"):
        quantised.save_weights(Path(output).with_suffix(".safetensors"))
        Path(output).write_text(str(quantised))
    else:
        given = {name: value for name, value in build.items() if name not in ("frontend", "batch")}
        relay.build(quantised, **given, progress=manner.progress).save(output)
    if report:
        if report.endswith(".json"):
            Path(report).write_text(found.to_json())
        else:
            found.plot(report)
    row = {"file": output, "samples": found.samples, "output_snr_db": list(found.output_snr), "top1": found.top1,
           "integer_macs": found.integer_macs}  # fmt: skip
    options.show(row, f"{found}\n\n{output} written", as_json)


def samples_of(place: str, module: Any) -> list[Any]:
    """Calibration samples, as dictionaries of arrays by input name: one per .npz file of a folder, or one per batch of
    rows of one .npz file. Raises InvalidArgument."""
    from relay import signature
    from relay.tools.command.inputs import arrays_of

    infos = [info for info in signature.read(module["main"])[0] if info.kind == "input"]
    names = {info.name for info in infos}

    def named(arrays: dict[str, Any]) -> dict[str, Any]:
        return arrays if set(arrays) <= names else dict(zip((i.name for i in infos), arrays.values(), strict=False))

    if Path(place).is_dir():
        files = sorted(Path(place).glob("*.npz"))
        if not files:
            raise InvalidArgument(place, "has no .npz files", "numpy.savez(FILE, **inputs) writes one")
        return [named(dict(arrays_of(str(file)))) for file in files]
    arrays = named(dict(arrays_of(place)))
    rows = min((len(array) for array in arrays.values()), default=0)
    batch = {info.name: info.shape[0] if info.shape else 1 for info in infos}
    return [
        {name: array[row : row + batch[name]] for name, array in arrays.items()}
        for row in range(0, rows - max(batch.values(), default=1) + 1, max(batch.values(), default=1))
    ]
