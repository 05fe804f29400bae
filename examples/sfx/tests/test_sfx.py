from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import relay
from relay.exploration.bisection import find_culprit
from relay.passes import PassContext, Pipeline
from relay.tools.dialect_checks import check
from relay.transform import explore

MODEL = """
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x3xf32> {
  %k = relay.constant dense<[[1, -2, 3, -4, 5, -6], [100, 90, 80, 70, 60, 50], [0, 0, 1, 0, 0, 127]]> : tensor<3x6xi8>
  %b = relay.constant dense<[5, -7, 2147483647]> : tensor<3xi32>
  %0 = sfx.quantize %x {exponents = array<i64: 5>} : (tensor<4x6xf32>) -> tensor<4x6xi8>
  %1 = sfx.dense %0, %k, %b : (tensor<4x6xi8>, tensor<3x6xi8>, tensor<3xi32>) -> tensor<4x3xi32>
  %2 = sfx.rescale %1 {shifts = array<i64: 1, 8, 26>} : (tensor<4x3xi32>) -> tensor<4x3xi8>
  %3 = sfx.dequantize %2 {exponents = array<i64: 5, 3, 0>} : (tensor<4x3xi8>) -> tensor<4x3xf32>
  func.return %3 : tensor<4x3xf32>
}
"""
KERNEL = [[1, -2, 3, -4, 5, -6], [100, 90, 80, 70, 60, 50], [0, 0, 1, 0, 0, 127]]
BIAS, SHIFTS, EXPONENTS = [5, -7, 2147483647], [1, 8, 26], [5, 3, 0]
X = np.random.default_rng(0).normal(0, 3, (4, 6)).astype(np.float32)


def saturate(number, bits):
    return min(max(number, -(1 << bits - 1)), (1 << bits - 1) - 1)


def by_hand(x):
    """The model in Python's integers, from the definition."""
    rows = []
    for row in x.tolist():
        codes = [saturate(int(abs(v) * 32 + 0.5) * (1 if v > 0 else -1), 8) for v in row]
        sums = [
            saturate(sum(a * b for a, b in zip(codes, units, strict=True)) + bias, 32)
            for units, bias in zip(KERNEL, BIAS, strict=True)
        ]
        shifted = [saturate((total + (1 << shift - 1)) >> shift, 8) for total, shift in zip(sums, SHIFTS, strict=True)]
        rows.append([code / 2**exponent for code, exponent in zip(shifted, EXPONENTS, strict=True)])
    return np.array(rows, np.float32)


def test_relay_finds_no_fault():
    assert check("sfx") == []


def test_a_layer_is_what_it_is_by_hand():
    module = relay.IRModule.parse(MODEL)
    np.testing.assert_array_equal(relay.interpreters.run(module, [X])[0], by_hand(X))
    for level in (0, 2, 3):
        with PassContext(opt_level=level):
            np.testing.assert_array_equal(relay.build(module).run(X), by_hand(X))
    assert find_culprit(module, "legalize,fold-constant,fuse-ops", [X]).equal


def test_it_is_explored_in_another_process():
    with ProcessPoolExecutor(1) as pool:
        levels = {"0": {"opt_level": 0}, "2": {"opt_level": 2}}
        found = explore(relay.IRModule.parse(MODEL), levels, rounds=1, executor=pool, check=True)
    assert all(found[level].error is None for level in levels)


def test_codes_that_are_dequantized_and_quantized_are_the_same():
    text = """
    func.func @main(%x: tensor<3xi8>) -> tensor<3xi8> {
      %0 = sfx.dequantize %x {exponents = array<i64: 1, 2, 3>} : (tensor<3xi8>) -> tensor<3xf32>
      %1 = sfx.quantize %0 {exponents = array<i64: 1, 2, 3>} : (tensor<3xf32>) -> tensor<3xi8>
      func.return %1 : tensor<3xi8>
    }"""
    module = Pipeline.parse("legalize,dce")(relay.IRModule.parse(text))
    assert len([*module["main"].body.block.ops]) == 1


def test_an_onnx_model_is_imported_and_built():
    onnx = pytest.importorskip("onnx")
    make, numbers = onnx.helper, onnx.numpy_helper
    weights = [numbers.from_array(np.array(KERNEL, np.int8), "k"), numbers.from_array(np.array(BIAS, np.int32), "b")]
    nodes = [
        make.make_node("Quantize", ["x"], ["q"], domain="org.sfx", exponents=[5]),
        make.make_node("Dense", ["q", "k", "b"], ["d"], domain="org.sfx", shifts=SHIFTS),
        make.make_node("Dequantize", ["d"], ["y"], domain="org.sfx", exponents=EXPONENTS),
    ]
    ends = [make.make_tensor_value_info(name, 1, dims) for name, dims in (("x", ["n", 6]), ("y", ["n", 3]))]
    graph = make.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    model = make.make_model(graph, opset_imports=[make.make_opsetid("org.sfx", 1)], ir_version=8)
    np.testing.assert_array_equal(relay.build(model.SerializeToString()).run(X), by_hand(X))
