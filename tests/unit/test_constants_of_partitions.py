"""Whose the constants of a partition are: its function's, its caller's, or its compiler's alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

import relay
from relay.byoc import find
from relay.byoc.compiler import Artifact
from relay.byoc.partitioning.partition_graph import PartitionGraph
from relay.dialects.attributes import Array, to_numpy
from relay.dialects.relay import ConstantOp
from relay.errors import Unsupported
from relay.interpreters import run
from relay.module import IRModule
from relay.runtime import loaders
from relay.runtime.loaders import Run
from tests.unit.interpreting import as_text, load_text
from tests.unit.partitioning_modules import Known, arguments, merged, same

T = "tensor<3xf32>"
DIGITS = Path(__file__).parents[2] / "examples/digits/digits_int8.tflite"
WEIGHTS = ([0.5, 1.25, -2.0], [3.0, -4.5, 7.0])
TEXT = f"""func.func @main(%x: {T}) -> {T} {{
  %v = relay.constant {{label = "v"}} dense<{WEIGHTS[0]}> : {T}
  %w = relay.constant {{label = "w"}} dense<{WEIGHTS[1]}> : {T}
  %a = relay.multiply %x, %v : ({T}, {T}) -> {T}
  %b = relay.add %a, %w : ({T}, {T}) -> {T}
  %c = relay.negative %b : ({T}) -> {T}
  %d = relay.multiply %c, %w : ({T}, {T}) -> {T}
  func.return %d : {T}
}}"""


def kept(function: FuncOp) -> Artifact:
    """The function as text; its constants are the executable's too."""
    constants = [op for op in function.walk() if isinstance(op, ConstantOp) and op.label is not None]
    made = as_text(function)
    return Artifact(made.data, {op.label.data: to_numpy(op.value) for op in constants if op.label is not None})


def load_kept(
    artifact: bytes, symbol: str, params: Mapping[str, Array], inputs: Sequence[Any], outputs: Sequence[Any]
) -> Run:
    """Wants what `kept` left to the executable."""
    assert {str(array.tolist()) for array in params.values()} <= set(map(str, WEIGHTS)) and params
    return load_text(artifact, symbol, params, inputs, outputs)


def held(params: Mapping[str, Array]) -> list[int]:
    """Which of the weights the executable holds itself."""
    flat = [array.reshape(-1).tolist() for array in params.values()]
    return [k for k, weight in enumerate(WEIGHTS) if weight in flat]


@pytest.mark.parametrize(
    ("constants", "leaves", "wanted"),
    [("bind", False, []), ("bind", True, [0, 1]), ("hoist", False, [0, 1]), ("vendor", False, [])],
)
def test_built_saved_loaded(
    known: Known, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, constants: str, leaves: bool, wanted: list[int]
):
    """Each choice gives the same numbers; what the executable holds besides artifacts is what the choice says."""
    known("x", "multiply", "add", compiled=kept if leaves else as_text)
    monkeypatch.setitem(loaders.LOADERS.registered, "x", load_kept if leaves else load_text)
    mod = IRModule.parse(TEXT)
    parted = relay.build_external_compiler(mod, "x", constants=constants)
    same(mod, parted)
    inputs = [len(f.body.block.args) for f in parted.functions.values() if "compiler" in f.attributes]
    assert inputs == ([3, 2] if constants == "hoist" else [1, 1])
    executable = relay.build(IRModule.parse(parted.to_text(weights=True)))
    executable.save(tmp_path / "model.relay")
    (x,) = arguments(mod)
    for each in (executable, relay.runtime.load(tmp_path / "model.relay")):
        assert np.array_equal(np.asarray(each.run(x)), run(mod, [x])[0])
        assert held(each.params) == wanted


def test_the_vendor_keeps_them_all(known: Known):
    """An artifact that leaves one to the executable is refused, options that are single numbers are not."""
    mod = merged_by(known, kept)
    wrong = (
        "compiler x: function relay_x_main_0: leaves 'v' to the executable, but its constants are the vendor's; part"
    )
    with pytest.raises(Unsupported, match=wrong):
        relay.optimize(mod)

    def with_options(function: FuncOp) -> Artifact:
        return Artifact(as_text(function).data, {"threads": np.array(2)})

    relay.optimize(merged_by(known, with_options))


OURS = ["c", "litert", "onednn", "onnxruntime", "systolic", "xnnpack"]


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.ci if n == "c" else ()) for n in OURS])
def test_ours_keep_them_all(name: str):
    """Whichever of our compilers owns the constants, the executable holds none of them, and the codes are the same."""
    try:
        find(name)
    except Unsupported as error:
        pytest.skip(str(error))
    mod = relay.frontend.from_tflite(DIGITS)
    parted = relay.build_external_compiler(mod, name, constants="vendor", exact=False)
    executable = relay.build(parted)
    image = np.load(DIGITS.with_name("digits_test.npz"))["int8_images"][:1]
    found, wanted = np.asarray(executable.run(image)), run(mod, [image])[0]
    assert np.array_equal(found, wanted) if find(name).exact else found.argmax() == wanted.argmax()
    assert executable.externals
    for row in executable.graph["externals"]:
        assert all(np.prod(shape, dtype=int) == 1 for _, shape, _ in row["params"].values())


def merged_by(known: Known, compiled: Callable[[FuncOp], Artifact]) -> IRModule:
    """The module whose constants are the vendor's."""
    known("x", "multiply", "add", compiled=compiled)
    mod = PartitionGraph(constants="vendor")(merged(IRModule.parse(TEXT), "x"))
    assert str(mod["relay_x_main_0"].attributes["byoc.constants"]) == '"vendor"'
    return mod
