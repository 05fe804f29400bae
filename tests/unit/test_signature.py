"""`relay.signature`: what is written on a function is read again, also from text; what is not there has a default."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from relay import IRModule, signature
from relay.errors import InvalidArgument, Malformed
from relay.signature import TensorInfo

TEXT = """
func.func @main(%a: tensor<2x3xi8>, %b: tensor<4xi16>) -> (tensor<2x3xi8>, tensor<4xi16>) {
  func.return %a, %b : tensor<2x3xi8>, tensor<4xi16>
}
"""
INT8, INT16 = np.dtype(np.int8), np.dtype(np.int16)


def test_defaults() -> None:
    inputs, outputs = signature.read(IRModule.parse(TEXT)["main"])
    assert [(i.name, i.kind, i.shape, i.dtype) for i in inputs] == [
        ("arg0", "input", (2, 3), INT8),
        ("arg1", "input", (4,), INT16),
    ]
    assert [(o.name, o.kind) for o in outputs] == [("out0", "output"), ("out1", "output")]


@pytest.mark.parametrize("name", ["größe/☃", 'a "b" \\c', "line\nend\t\x01", "中文"])
def test_every_name_survives_as_text(name: str) -> None:
    mod = IRModule.parse(TEXT)
    tensors = [TensorInfo(name, (2, 3), INT8, "input"), TensorInfo("b", (4,), INT16, "input")]
    signature.write(mod["main"], tensors, [replace(each, kind="output") for each in tensors])
    for options in ({}, {"generic": True}, {"locations": True}):
        again = IRModule.parse(mod.to_text(**options))
        assert signature.read(again["main"])[0][0].name == name and again.to_text() == mod.to_text()


@pytest.mark.parametrize("initial", [np.full(4, -7, np.int16), np.arange(4, dtype=np.int16)])
def test_round_trip(initial: np.ndarray) -> None:
    mod = IRModule.parse(TEXT)
    image = TensorInfo("image/0", (2, 3), np.dtype(np.uint8), "input", float(np.float32(0.1)), 128)
    state = TensorInfo("cell", (4,), INT16, "state", 2.0**-11, 0, initial)
    signature.write(mod["main"], [image, state], [TensorInfo("out", (2, 3), INT8, "output"), state])
    for each in (mod, IRModule.parse(mod.to_text())):
        inputs, outputs = signature.read(each["main"])
        assert (inputs[0].name, inputs[0].dtype, inputs[0].scale, inputs[0].zero_point) == (
            "image/0",
            np.uint8,
            float(np.float32(0.1)),
            128,
        )
        assert inputs[0].initial is None and outputs[0].scale is None
        assert [(i.kind, i.name) for i in (inputs[1], outputs[1])] == [("state", "cell")] * 2
        assert inputs[1].initial is not None and inputs[1].initial.dtype == np.int16
        assert np.array_equal(inputs[1].initial, initial)


def test_a_description_per_argument() -> None:
    with pytest.raises(InvalidArgument, match="has 2 arguments, but 0"):
        signature.write(IRModule.parse(TEXT)["main"], [], [])


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ("5 : i32", "is no array"),
        ("[{}]", "describes 1 tensors"),
        ("[{}, 3 : i32]", "describes no tensor"),
        ('[{name = "a"}, {name = "a"}]', "a name twice"),
        ('[{kind = "weight"}, {}]', "kind of arg0"),
        ("[{name = 1 : i32}, {}]", "is no string"),
        ('[{scale = "big"}, {}]', "scale"),
        ("[{initial = dense<0> : tensor<5xi8>}, {}]", "initial"),
        ('[{dtype = "i8"}, {}]', "dtype"),
    ],
)
def test_bad_descriptions(inputs: str, message: str) -> None:
    text = TEXT.replace(") {\n", f") attributes {{relay.inputs = {inputs}}} {{\n")
    with pytest.raises(Malformed, match=message):
        signature.read(IRModule.parse(text)["main"])


def test_numbers_of_another_size_than_described() -> None:
    mod = IRModule.parse(TEXT)
    signature.check(mod["main"])
    wrong = TensorInfo("a", (2, 3), np.dtype(np.float32)), TensorInfo("b", (4,), INT16)
    signature.write(mod["main"], wrong, signature.read(mod["main"])[1])
    with pytest.raises(Malformed, match="a is int8, but described as float32"):
        signature.check(mod["main"])


def test_results_are_cut_to_counts() -> None:
    mod = IRModule.parse(TEXT)
    inputs, (first, last) = signature.read(mod["main"])
    counted = replace(first, count="n", axis=1)
    with pytest.raises(Malformed, match="out0 is counted by 'n', which is no output of the kind count"):
        signature.write(mod["main"], inputs, [counted, last])
        signature.read(mod["main"])
    infos = [counted, last, TensorInfo("n", (), np.dtype(np.int64), "count")]
    whole = [np.arange(6).reshape(2, 3), np.arange(4), np.asarray(2)]
    found = signature.cut(whole, infos)
    assert [each.tolist() for each in found] == [[[0, 1], [3, 4]], [0, 1, 2, 3]]
