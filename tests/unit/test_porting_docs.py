"""docs/porting_from_tvm.md: its programs run; what is not here under TVM's name says what to write."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import relay
from relay.errors import InvalidArgument
from relay.runtime import graph_executor
from relay.universe import TVM_PASSES

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
PAGE = (ROOT / "docs" / "porting_from_tvm.md").read_text()
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.ci
@pytest.mark.parametrize(("number", "said"), [(0, "of 10 runs"), (1, "[[")])
def test_the_programs_run(
    number: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    exec(PROGRAMS[number], {})
    assert said in capsys.readouterr().out


def test_a_graph_module_is_the_executable():
    lib = relay.build(DIGITS)
    module = graph_executor.GraphModule(lib["default"]())
    image = np.random.default_rng(0).integers(-128, 128, (1, 8, 8, 1)).astype(np.int8)
    module.run(**{lib.inputs[0].name: image})
    found, expected = module.get_output(0), lib.run(image)
    assert type(found.numpy()) is np.ndarray and np.array_equal(found.asnumpy(), np.asarray(expected))
    assert (module.get_num_inputs(), module.get_num_outputs()) == (1, 1)
    assert len(module.benchmark(None, repeat=2, number=3).results) == 6
    with pytest.raises(InvalidArgument, match=r"executable\['main'\]: is not there: one function is, \"default\""):
        lib["main"]
    with pytest.raises(InvalidArgument, match="GraphModule: takes what relay.build returns"):
        graph_executor.GraphModule(cast("Any", DIGITS))


def test_shapes_under_both_names():
    shapes = {"serving_default_image:0": (1, 8, 8, 1)}
    both = [relay.frontend.from_tflite(DIGITS, **cast("Any", {name: shapes})) for name in ("shapes", "shape_dict")]
    assert str(both[0]) == str(both[1]) == both[0].astext(show_meta_data=False)
    with pytest.raises(InvalidArgument, match="shape_dict: is given, and so is shapes"):
        relay.frontend.from_tflite(DIGITS, shapes=shapes, shape_dict=shapes)


@pytest.mark.parametrize("name", ["from_tflite", "from_onnx"])
def test_options_as_tvm_has_them(name: str):
    importer: Any = getattr(relay.frontend, name)
    with pytest.raises(InvalidArgument, match=f"{name}: takes one model, and its options by name; write shapes="):
        importer(DIGITS, {"x": (1,)}, {"x": "int8"})
    with pytest.raises(InvalidArgument, match=f"{name}: dtype_dict: is no option here; it is the file's: leave it out"):
        importer(DIGITS, dtype_dict={"x": "int8"})


def test_one_module_and_no_pair():
    said = "mod, params = ...: importers return one module, with the weights in it; write `mod = ...`"
    with pytest.raises(InvalidArgument, match=re.escape(said)):
        _mod, _params = relay.frontend.from_tflite(DIGITS)
    assert [*relay.frontend.from_tflite(DIGITS)] == ["main"] == [name for name in relay.frontend.from_tflite(DIGITS)]


def test_passes_of_tvm_that_are_not_here():
    known = set(relay.transform.__all__)
    assert not known & set(TVM_PASSES)
    for name, instead in TVM_PASSES.items():
        with pytest.raises(AttributeError, match=f"no attribute '{name}'; .+"):
            getattr(relay.transform, name)
        with pytest.raises(ImportError, match=f"cannot import name '{name}' from 'relay.transform'; .+"):
            exec(f"from relay.transform import {name}")
        assert set(re.findall(r"\b([A-Z]\w+)\(", instead)) <= known
