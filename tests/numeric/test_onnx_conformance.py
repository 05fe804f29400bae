"""ONNX's own node tests: a fixed few in every run, all behind `-m slow`, with the list of those that do not pass."""

from __future__ import annotations

from unittest import TestResult

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the node tests are onnx's")

from relay.compile.onnx_backend import OnnxBackend
from relay.errors import InvalidArgument
from tests.numeric import onnx_node_tests
from tests.numeric.onnx_node_tests import MARKS, SUPPORT, cases, cases_of, expected, reason_of, run_case, table

FEW = {
    "affinegrid": "AffineGrid",
    "conv": "Conv",
    "gather": "Gather",
    "gru": "GRU",
    "layernormalization": "LayerNormalization",
    "loop": "Loop",
    "pad": "Pad",
    "resize": "Resize",
    "slice": "Slice",
    "where": "Where",
}
"""Modules of cases: bodies of functions, networks, indices, recurrence, control flow, shapes that inputs decide."""


@pytest.mark.parametrize("module", FEW)
def test_few_node_tests_by_the_interpreter(module: str) -> None:
    failures = expected()
    said = {case.name: run_case(case) for case in cases_of(module, FEW[module]) if case.name not in failures}
    assert said and not {name: what for name, what in said.items() if what}


@pytest.mark.parametrize(
    ("module", "operator", "name"),
    [
        ("gather", "Gather", "test_gather_negative_indices"),
        ("rotaryembedding", "RotaryEmbedding", "test_rotary_embedding"),
        pytest.param("attention", "Attention", "test_attention_4d_gqa_with_past_and_present", marks=pytest.mark.ci),
        ("bitcast", "BitCast", "test_bitcast_bool_to_uint8"),
        ("bitshift", "BitShift", "test_bitshift_left_int32_negative_shift"),
    ],
)
def test_few_node_tests_compiled(module: str, operator: str, name: str) -> None:
    (case,) = (each for each in cases_of(module, operator) if each.name == name)
    assert run_case(case, compiled=True) == ""


@pytest.mark.slow
def test_all_node_tests_by_the_interpreter() -> None:
    said = {name: what for name, case in cases().items() if (what := run_case(case))}
    assert {name: reason_of(what) for name, what in said.items()} == expected()
    assert not [name for name, what in said.items() if what.startswith(("crashes", "takes longer"))]


@pytest.mark.slow
def test_a_node_test_of_each_operator_compiled() -> None:
    """Those that pass in the interpreter; the first of each operator."""
    failures = expected()
    first = {case.model.graph.node[0].op_type: case for name, case in [*cases().items()][::-1] if name not in failures}
    said = {case.name: run_case(case, compiled=True) for case in first.values()}
    assert not {name: what for name, what in said.items() if what}


def test_the_list_is_that_of_the_page() -> None:
    inside = SUPPORT.read_text().split(MARKS[0])[1].split(MARKS[1])[0]
    count = int(inside.split(" of the ")[1].split()[0])
    assert inside == table(expected(), count) and count - len(expected()) >= 1700


def test_a_case_that_differs_is_told() -> None:
    (case,) = (each for each in cases_of("add", "Add") if each.name == "test_add")
    (inputs, (wanted,)) = case.data_sets[0]
    wrong = onnx_node_tests.differing(case.model, inputs, [wanted + 1], case)
    assert wrong == "output 0 differs"


@pytest.mark.slow
def test_the_backend_runs_in_the_runner_of_onnx() -> None:
    """What its node tests of an operator find is what ours find."""
    from onnx.backend.test import BackendTest

    suite = BackendTest(OnnxBackend, __name__).include("test_gather_1_cpu").test_suite
    result = TestResult()
    suite.run(result)
    assert result.testsRun and result.wasSuccessful() and len(result.skipped) < result.testsRun


def test_the_backend_takes_inputs_by_place_and_by_name() -> None:
    (case,) = (each for each in cases_of("slice", "Slice") if each.name == "test_slice")
    prepared = OnnxBackend.prepare(case.model)
    inputs, (wanted,) = case.data_sets[0]
    for given in (inputs, dict(zip(prepared.names, inputs, strict=True))):
        assert np.array_equal(prepared.run(given)[0], wanted)
    with pytest.raises(InvalidArgument, match="inputs: are not 5 arrays of numbers; give x, starts, ends, axes, steps"):
        prepared.run(inputs[:2])
    with pytest.raises(InvalidArgument, match="device: 'CUDA' is none of this backend; give 'CPU'"):
        OnnxBackend.prepare(case.model, "CUDA")
