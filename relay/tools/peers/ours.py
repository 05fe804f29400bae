"""Runs a model with relay itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import relay
from relay.tools.peers import Array, Session, importer_options

PACKAGE = "relay-mlir"


def load(model: Path, threads: int, inputs: Sequence[Array]) -> Session:
    """Build the model, or load it if it is a saved executable, and set its inputs once; `run()` is timed."""
    options = importer_options(model, inputs)
    if model.suffix == ".relay":
        executable = relay.runtime.load(model, num_threads=threads)
    else:
        executable = relay.build(model, num_threads=threads, frontend=options)
    specs = [spec for spec in executable.inputs if spec.kind == "input"]
    given = [array for array in inputs if array.ndim or not options]
    for spec, array in zip(specs, given, strict=True):
        executable.set_input(spec.name, array)
    visible = [number for number, spec in enumerate(executable.outputs) if spec.kind == "output"]
    return Session(partial(executable.run), lambda: [executable.get_output(number) for number in visible])
