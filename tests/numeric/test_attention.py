"""Attention, compiled, against its formula in float64: masks, grouped heads, what came before, capped scores."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f32, i64
from xdsl.ir import Attribute

from relay.compile.entry import build
from relay.compile.pipeline import optimize
from relay.dialects import relay
from relay.dialects.attributes import Array
from relay.module import IRModule
from tests.numeric.compiled_modules import Net

RANDOM = np.random.default_rng(0)
MASKS: dict[str, Array | None] = {
    "none": None,
    "added": RANDOM.normal(size=(3, 1, 7, 20)).astype(np.float32),
    "kept": RANDOM.random((7, 20)) < 0.6,
    "nothing kept": np.zeros((1, 1, 7, 1), bool),
    "nothing left": np.full((7, 20), -np.inf, np.float32),
}


def formula(q: Array, k: Array, v: Array, mask: Array | None, scale: float, causal: int | None, cap: float) -> Array:
    """The definition, row by row, in float64."""
    result = np.zeros((*q.shape[:3], v.shape[3]))
    for b, h, row in np.ndindex(*q.shape[:3]):
        group = h // (q.shape[1] // k.shape[1])
        scores = k[b, group].astype(np.float64) @ q[b, h, row].astype(np.float64) * scale
        scores = np.tanh(scores / cap) * cap if cap else scores
        if mask is not None:
            own = np.broadcast_to(mask, (*q.shape[:3], k.shape[2]))[b, h, row]
            scores = np.where(own, scores, -np.inf) if own.dtype == bool else scores + own
        if causal is not None:
            scores[max(row + causal + 1, 0) :] = -np.inf
        if np.isfinite(scores).any():
            powers = np.exp(scores - scores.max())
            result[b, h, row] = powers / powers.sum() @ v[b, group]
    return result


@pytest.mark.parametrize(
    ("causal", "cap"), [(13, 2.0), *(pytest.param(n, 0.0, marks=pytest.mark.ci) for n in (None, -2))]
)
def test_compiled_against_float64(causal: int | None, cap: float) -> None:
    net = Net(3)
    wanted: list[Array] = []
    for kind, mask in MASKS.items():
        shapes = ((3, 4, 7, 16), (3, 2, 20, 16), (3, 2, 20, 24))
        q, k, v = (net.rng.normal(size=shape).astype(np.float32) for shape in shapes)
        given = [net.argument(each) for each in (q, k, v, mask) if each is not None]
        properties: dict[str, Attribute] = {"scale": FloatAttr(0.25, f32)}
        properties |= {} if causal is None else {"causal": IntegerAttr(causal, i64)}
        properties |= {"softcap": FloatAttr(cap, f32)} if cap else {}
        net.result(kind, net.add(relay.AttentionOp, given, properties))
        wanted.append(formula(q, k, v, mask, 0.25, causal, cap))
    found = build(net.module())(*net.inputs)
    assert isinstance(found, tuple)
    for name, each, exact in zip(net.results, found, wanted, strict=True):
        assert np.abs(each - exact).max() <= 2e-6 * np.abs(exact).max(), name


Large = tuple[int, int, Array | None, int | None]
LARGE: tuple[Large, ...] = (
    (50, 197, None, None),
    (33, 40, RANDOM.random((2, 1, 33, 40)) < 0.5, 7),
    (9, 700, RANDOM.normal(size=(2, 1, 1, 700)).astype(np.float32), None),
    (64, 64, None, 0),
)
"""Rows, keys, mask, and from where on keys are left out."""


@pytest.mark.parametrize(
    "cases", [LARGE[1:3], pytest.param((LARGE[0], LARGE[3]), marks=pytest.mark.ci)], ids=["masks", "none"]
)
def test_one_kernel_against_float64(cases: tuple[Large, ...]) -> None:
    """Rows enough for scores in scratch memory: masks of booleans and of floats; without one, several blocks and one of
    what is left."""
    net = Net(4)
    wanted: list[Array] = []
    for rows, keys, mask, causal in cases:
        shapes = ((2, 4, rows, 20), (2, 2, keys, 20), (2, 2, keys, 24))
        q, k, v = (net.rng.normal(size=shape).astype(np.float32) for shape in shapes)
        given = [net.argument(each) for each in (q, k, v, mask) if each is not None]
        properties: dict[str, Attribute] = {"scale": FloatAttr(0.25, f32)}
        properties |= {} if causal is None else {"causal": IntegerAttr(causal, i64)}
        net.result(f"{rows} {keys}", net.add(relay.AttentionOp, given, properties))
        wanted.append(formula(q, k, v, mask, 0.25, causal, 0.0))
    module = net.module()
    kernels = optimize(module, "x86_64 -mattr=+avx2,+fma").functions
    assert sum(name.startswith("attention") for name in kernels) == len(wanted), list(kernels)
    found = build(module)(*net.inputs)
    assert isinstance(found, tuple)
    for name, each, exact in zip(net.results, found, wanted, strict=True):
        assert np.abs(each - exact).max() <= 2e-6 * np.abs(exact).max(), name


Behind = tuple[int, int, type[relay.LessOp] | type[relay.LessEqualOp], int, int]
BEHIND: tuple[Behind, ...] = (
    (3, 2, relay.LessOp, 5, 0),
    (8, 2, relay.LessEqualOp, 0, 0),
    (1, 3, relay.LessEqualOp, 0, 2),
    (1, 3, relay.LessEqualOp, 0, 0),
    (3, 2, relay.LessOp, 0, 0),
    (1, 2, relay.LessEqualOp, -2, 0),
)
"""Rows and heads, the comparison of a key's place with the position, what is added to each."""


@pytest.mark.parametrize("cases", [BEHIND[:3], pytest.param(BEHIND[3:], marks=pytest.mark.ci)], ids=["few", "more"])
def test_keys_behind_a_position_are_not_read(cases: tuple[Behind, ...]) -> None:
    """Caches with room for more: positions inside, at the ends of vectors, and outside, where all or none count."""
    rng, keys = np.random.default_rng(5), 80
    for rows, heads, predicate, first, more in cases:
        net, scale = Net(6), np.array(0.25, np.float32)
        q, k, v = (rng.normal(size=(heads, count, 32)).astype(np.float32) for count in (rows, keys, keys))
        query, key, value, position = (net.argument(each) for each in (q, k, v, np.array([0])))
        if more:  # computed in the kernel, whose loops go over all keys
            position = net.add(relay.AddOp, [position, net.constant(np.array([more]))], {})
        seen = net.add(predicate, [net.constant(np.arange(keys) + first), position], {})
        scores = net.add(relay.BatchMatmulOp, [query, key], {"out_dtype": f32})
        scores = net.add(relay.MultiplyOp, [scores, net.constant(scale)], {})
        scores = net.add(relay.WhereOp, [seen, scores, net.constant(np.array(-1e9, np.float32))], {})
        weights = net.add(relay.SoftmaxOp, [scores], {"beta": FloatAttr(1.0, f32)})
        properties: dict[str, Attribute] = {"transpose_b": IntegerAttr(0, 1), "out_dtype": f32}
        net.result("values", net.add(relay.BatchMatmulOp, [weights, value], properties))
        executable = build(net.module())
        for place in (0, 1, 14, 15, 16, 17, 31, 63, 64, 78, 79, 80, 500, -1, -(2**63), 2**63 - 1):
            last = (place + more + 2**63) % 2**64 - 2**63
            count = last + (predicate is relay.LessEqualOp) - first
            inside = 0 < count < keys and rows < 8 and not more  # of eight rows keys are packed, and masked
            own, weighed = k.copy(), v.copy()
            if inside:  # what is behind is not read
                own[:, count:], weighed[:, count:] = np.nan, np.nan
            found = executable.run(q, own, weighed, np.array([place]))
            assert isinstance(found, np.ndarray)
            exact = np.zeros(found.shape)
            for head, row in np.ndindex(heads, rows):
                every = k[head].astype(np.float64) @ q[head, row].astype(np.float64) * 0.25
                every = np.where(np.arange(keys) < count, every, -1e9)
                powers = np.exp(every - every.max())
                exact[head, row] = powers / powers.sum() @ v[head]
            assert np.abs(found - exact).max() <= 2e-6 * np.abs(exact).max(), (rows, place)


def test_heads_that_share_one_matrix_of_keys() -> None:
    """Repeated keys are found to be one matrix after legalization, too."""
    module = IRModule.parse("""
func.func @main(%q: tensor<1x7x3x8xf32>, %k: tensor<1x1x21x8xf32>) -> tensor<1x7x3x8xf32> {
  %k1 = relay.expand_dims %k {axis = 2 : i64} : (tensor<1x1x21x8xf32>) -> tensor<1x1x1x21x8xf32>
  %k2 = relay.broadcast_to %k1 {shape = array<i64: 1, 1, 7, 21, 8>} : (tensor<1x1x1x21x8xf32>) -> tensor<1x1x7x21x8xf32>
  %k3 = relay.reshape %k2 {newshape = array<i64: 1, 7, 21, 8>} : (tensor<1x1x7x21x8xf32>) -> tensor<1x7x21x8xf32>
  %s = relay.nn.batch_matmul %q, %k3 {out_dtype = f32}
    : (tensor<1x7x3x8xf32>, tensor<1x7x21x8xf32>) -> tensor<1x7x3x21xf32>
  %w = relay.nn.softmax %s {beta = 1.0 : f32} : (tensor<1x7x3x21xf32>) -> tensor<1x7x3x21xf32>
  %r = relay.nn.batch_matmul %w, %k3 {transpose_b = false, out_dtype = f32}
    : (tensor<1x7x3x21xf32>, tensor<1x7x21x8xf32>) -> tensor<1x7x3x8xf32>
  func.return %r : tensor<1x7x3x8xf32>
}""")
    q, k = (RANDOM.normal(size=(1, *dims, 8)).astype(np.float32) for dims in ((7, 3), (1, 21)))
    wanted = formula(q, k, k, None, 1.0, None, 0.0)
    np.testing.assert_allclose(np.asarray(build(module).run(q, k)), wanted, rtol=0, atol=2e-6)
