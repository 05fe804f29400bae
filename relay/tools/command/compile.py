"""`relay compile`: compiles a model to an executable, object code, a library or a text."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import rich_click as click

from relay.errors import InvalidArgument
from relay.tools.command import options

EMITTED = {
    "relay": "one file for `relay run` and relay.runtime.load",
    "o": "object code and a header for C and C++",
    "a": "the same as a static library, libNAME.a",
    "so": "the same as a shared library, libNAME.so",
    "c": "readable C99 and a header",
    "mlir": "MLIR after the last pass",
    "ll": "LLVM IR",
    "s": "assembly",
    "ptx": "PTX of a GPU's kernels",
    "spv": "SPIR-V of a GPU's kernels",
}
TEXTS = {"mlir": "mlir", "ll": "ll", "s": "asm", "ptx": "ptx"}
"""The kind of source (of `Executable.get_source`) that is written for an output suffix."""


@click.command("compile", cls=options.ModelCommand)
@click.argument("model", type=options.MODEL)
@click.option("-o", "--output", required=True, metavar="FILE", help="file to write; its suffix selects what is written")
@click.option(
    "--emit",
    type=click.Choice([*EMITTED]),
    help="what to write (default: by the suffix of --output); " + "; ".join(f"{a}: {b}" for a, b in EMITTED.items()),
)
@options.model_options
@options.JSON
@click.pass_obj
def command(manner: options.Manner, model: str, output: str, emit: str | None, as_json: bool, **chosen: Any) -> None:
    """Compile a model to one file for `relay run`, to an object or library for C programs, or to C, PTX or SPIR-V."""
    build, _ = options.arguments_of(chosen)
    kind = emit or Path(output).suffix.removeprefix(".")
    if kind not in EMITTED:
        known = ", ".join(f".{name}" for name in EMITTED)
        what = f"{output} has no suffix that says what to write"
        raise InvalidArgument("--output", what, f"known are {known}; or give --emit")
    start = perf_counter()
    written = write_c(model, output, build) if kind == "c" else write(kind, model, output, build, manner)
    seconds = perf_counter() - start
    rows = [{"file": str(path), "bytes": path.stat().st_size} for path in written]
    text = "\n".join(f"{row['file']}  {row['bytes']} bytes" for row in rows)
    options.show({"files": rows, "seconds": seconds}, text, as_json)


def write_c(model: str, output: str, build: dict[str, Any]) -> list[Path]:
    """Write the model as C, which is the same for every target, except for parts that external compilers compile.
    Returns the paths written. Raises InvalidArgument for options that C does not depend on."""
    from relay.byoc import build_external_compiler
    from relay.byoc.c import export_c

    if more := sorted(set(build) - {"batch", "frontend", "num_threads", "external", "exact"}):
        raise InvalidArgument("--emit c", "is C for any machine", f"leave out {', '.join(more)}")
    module = options.module(model, build)
    if external := build.get("external"):
        module = build_external_compiler(module, external, exact=build.get("exact"))
    return export_c(module, Path(output).parent, options.stem_of(output))


def write(kind: str, model: str, output: str, build: dict[str, Any], manner: options.Manner) -> list[Path]:
    """Build the model and write the file of this kind. Returns the paths written. Raises InvalidArgument."""
    from relay.runtime.dynamic import DynamicExecutable
    from relay.tools.command.inputs import check_sizes

    executable = options.executable(model, build, manner)
    if kind == "relay":
        if isinstance(executable, DynamicExecutable) and not executable.interface.blocks:
            check_sizes(executable.inputs)
        executable.save(output)
        return [Path(output)]
    if kind == "o":
        return executable.export(Path(output).parent, options.stem_of(output))
    if kind in ("a", "so"):
        stem = options.stem_of(Path(output).name.removeprefix("lib"))
        return executable.export(Path(output).parent, stem, kind)
    from relay.files import replace_file

    if kind == "spv":
        if executable.graph.get("device", {}).get("kind") != "opencl":
            raise InvalidArgument("--emit spv", "is the code of kernels for OpenCL", "add --target opencl")
        data = executable.library.code
    elif kind == "ptx" and "device" not in executable.graph:
        raise InvalidArgument("--emit ptx", "is the code of kernels for NVIDIA's GPUs", "add --target cuda")
    else:
        data = executable.get_source(TEXTS[kind]).encode()
    replace_file(output, data)
    return [Path(output)]
