"""Attention in one launch: of codes, the integers of the interpreter; of floats, close to formulas in float64."""

from __future__ import annotations

import re

import numpy as np
import pytest
from xdsl.dialects.builtin import BoolAttr, FloatAttr, IntegerAttr, f32, i8, i64
from xdsl.ir import Attribute

import relay
from relay.dialects import qnn
from relay.dialects import relay as ops
from relay.dialects.attributes import Array, element_type, scalar_attr
from relay.errors import Unsupported
from relay.interpreters import run
from relay.lowering.gpu.formats import FLOATS, Format
from relay.lowering.gpu.strategies.attention import KEYS
from relay.runtime.opencl_driver import driver as opencl_driver
from tests.numeric.compiled_modules import Net, equal, offsets
from tests.numeric.gpu_models import Emulated, check
from tests.numeric.test_gpu_weight_only import built
from tests.numeric.test_models_compiled import outputs_of
from tests.ptx.interpreter import run as run_ptx
from tests.ptx.memory import Fault

Case = tuple[tuple[int, int, int], int, int, tuple[str, str], tuple[int, int], int, bool]
CASES: tuple[Case, ...] = (
    ((2, 24, 32), 24, 32, ("uint8", "int8"), (113, 0), 0, False),
    ((3, 37, 68), 40, 20, ("int8", "uint8"), (0, 131), 9, False),
    ((2, 70, 64), 128, 64, ("uint8", "uint8"), (7, 250), 120, False),
    ((2, 16, 64), 72, 36, ("int8", "int8"), (-5, 9), -7, True),
)
"""Heads, queries and size; keys; size of values; types and zero points of queries and keys; zero point of values;
whether keys lie as rows."""
MANY: tuple[Case, ...] = (
    ((2, 20, 36), 136, 32, ("uint8", "int8"), (113, 0), 0, False),
    ((2, 70, 64), 192, 20, ("int8", "uint8"), (3, 131), 9, True),
)
"""Keys in tiles."""


def attention(net: Net, case: Case, name: str, rescaled: bool) -> None:
    """One attention, with a mask that is added to the scores of each key."""
    (heads, queries, size), keys, width, types, zero_points, of_values, by_rows = case
    q = net.argument(net.numbers(types[0], heads, queries, size))
    k = net.argument(net.numbers(types[1], heads, *((keys, size) if by_rows else (size, keys))))
    v = net.argument(net.numbers("int8", heads, keys, width))
    properties = offsets(zero_points) | {"transpose_b": BoolAttr.from_bool(by_rows)}
    scores = net.add(ops.CastOp, [net.add(ops.BatchMatmulOp, [q, k], properties)], {"dtype": f32})
    scores = net.add(ops.MultiplyOp, [scores, net.constant(np.array(2.0**-14, np.float32))], {})
    scores = net.add(ops.AddOp, [scores, net.argument(net.numbers("float32", keys))], {})
    weights = net.add(ops.SoftmaxOp, [scores], {"beta": FloatAttr(1.0, f32)})
    codes = net.add(qnn.QuantizeOp, [weights], quantized())
    properties = offsets((-128, of_values)) | {"transpose_b": BoolAttr.from_bool(False)}
    sums = net.add(ops.BatchMatmulOp, [codes, v], properties)
    net.result(f"attention {name}", net.requantize(sums, width, "int8") if rescaled else sums)


def quantized() -> dict[str, Attribute]:
    """Weights from 0 to 1 as codes."""
    return {"scale": scalar_attr(1 / 64, f32), "zero_point": scalar_attr(-128, element_type("int32")), "out_dtype": i8}


@pytest.mark.ci
@pytest.mark.parametrize("cases", [CASES, MANY], ids=["registers", "tiles"])
def test_codes_in_one_launch(cases: tuple[Case, ...]):
    net = Net(51)
    for number, case in enumerate(cases):
        attention(net, case, str(number), rescaled=bool(number % 2))
    model = check(net)
    assert kernels_of(model) == ["attention"] * len(cases)


def kernels_of(model: Emulated) -> list[str]:
    """What each launch is named after."""
    return [row["kernel"].partition("_")[0] for row in model.graph["device"]["launches"]]


@pytest.mark.parametrize("case", [CASES[1], pytest.param(MANY[0], marks=pytest.mark.ci)], ids=["registers", "tiles"])
def test_ptx_of_codes(case: Case):
    net = Net(52)
    attention(net, case, "of codes", rescaled=True)
    module = net.module()
    (found,) = run_ptx(relay.build(module, target="cuda"), net.inputs)[0]
    assert equal(found, run(module, net.inputs)[0])


Floats = tuple[tuple[int, int, int], int, int, bool]
FLOATS_OF: tuple[Floats, ...] = (
    ((2, 24, 32), 24, 32, False),
    ((2, 70, 64), 200, 64, True),
    ((2, 16, 40), 72, 36, False),
    ((3, 33, 20), 64, 12, True),
)
"""Heads, queries and size; keys; size of values; whether keys lie as rows."""


def of_floats(net: Net, number: int, format: Format, case: Floats | None = None) -> tuple[Array, Array]:
    """One attention with a mask of keys; what it is in float64, and how far off it may be."""
    (heads, queries, size), keys, width, by_rows = case or FLOATS_OF[number]
    q, mask = net.numbers("float32", heads, queries, size), net.numbers("float32", keys) * np.float32(4)
    k = net.numbers("float32", heads, *((keys, size) if by_rows else (size, keys)))
    v, scale = net.numbers("float32", heads, keys, width), np.float32(size**-0.5)
    mask[::5] = -np.inf
    properties = offsets(None) | {"transpose_b": BoolAttr.from_bool(by_rows)}
    scores = net.add(ops.BatchMatmulOp, [net.argument(q), net.argument(k)], properties)
    scores = net.add(ops.MultiplyOp, [scores, net.constant(np.array(scale))], {})
    scores = net.add(ops.AddOp, [scores, net.argument(mask)], {})
    weights = net.add(ops.SoftmaxOp, [scores], {"beta": FloatAttr(1.0, f32)})
    properties = offsets(None) | {"transpose_b": BoolAttr.from_bool(False)}
    net.result(f"attention {number}", net.add(ops.BatchMatmulOp, [weights, net.argument(v)], properties))
    k64 = (k.swapaxes(1, 2) if by_rows else k).astype(np.float64)
    return exact(q.astype(np.float64) * scale, k64, v.astype(np.float64), mask.astype(np.float64), format)


def exact(q: Array, k: Array, v: Array, mask: Array, format: Format) -> tuple[Array, Array]:
    """Attention in float64, and its bound as docs/gpu.md states it, by the scores' error d and the sum of the weights'
    products: `(exp(2 d) (1 + B) - 1) sum w |v|`, and what is lost of halves that are no normal numbers."""
    scores = q @ k + mask
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    size, keys = k.shape[-2:]
    off = format.bound(size + 16) * (np.abs(q) @ np.abs(k)) + format.tiny * 4 * size
    grown = np.exp(2 * off.max(axis=-1, keepdims=True)) * (1 + format.bound(keys + 64)) - 1
    return weights @ v, grown * (weights @ np.abs(v)) + format.tiny * 4 * np.abs(v).sum(axis=1, keepdims=True)


@pytest.mark.ci
@pytest.mark.parametrize("name", ["f16", *(pytest.param(name, marks=pytest.mark.slow) for name in ("tf32", "bf16"))])
def test_floats_in_one_launch(name: str):
    net, format = Net(53), FLOATS[name]
    wanted = [of_floats(net, number, format) for number in range(len(FLOATS_OF))]
    model = Emulated(net.module(), f"cuda -matmul={name}")
    assert kernels_of(model) == ["attention"] * len(FLOATS_OF)
    for found, (want, most) in zip(model.run(net.inputs), wanted, strict=True):
        assert np.max(np.abs(found - want) / most) <= 1
        assert np.max(np.abs(found - want)) > format.roundoff / 64 * np.abs(want).max(), "nothing was rounded"


@pytest.mark.parametrize(
    ("name", "number"), [("f16", 3), *(pytest.param(name, 1, marks=pytest.mark.ci) for name in FLOATS)]
)
def test_ptx_of_floats(name: str, number: int):
    net, format = Net(54), FLOATS[name]
    want, most = of_floats(net, number, format)
    (found,) = run_ptx(relay.build(net.module(), target=f"cuda -matmul={name}"), net.inputs)[0]
    assert np.max(np.abs(found - want) / most) <= 1


@pytest.mark.parametrize("keys", [pytest.param(48, marks=pytest.mark.ci), 3 * KEYS])
def test_rows_without_keys_are_0(keys: int):
    """Causal attention of several groups, some of whose rows leave out all keys, and first tiles leave out all."""
    net, rows = Net(55), 24
    shapes = ((1, 4, rows, 32), (1, 2, keys, 32), (1, 2, keys, 16))
    mask = net.numbers("float32", rows, keys)
    mask[3] = -np.inf
    mask[7, : keys - 5] = -np.inf
    given = [net.argument(each) for each in (*(net.numbers("float32", *shape) for shape in shapes), mask)]
    properties = {"scale": FloatAttr(0.2, f32), "causal": IntegerAttr(keys - rows, i64)}
    net.result("attention", net.add(ops.AttentionOp, given, properties))
    module = net.module()
    (want,), model = run(module, net.inputs), Emulated(module, "cuda -matmul=f16")
    assert "attention" in kernels_of(model)
    (found,) = model.run(net.inputs)
    assert not found[:, :, 3].any() and np.abs(found - want).max() <= 4e-3 * np.abs(want).max()


@pytest.mark.ci
@pytest.mark.parametrize("floats", [True, False])
def test_each_barrier_is_needed(floats: bool):
    """Where two warps share queries, keys and values, the PTX interpreter faults without any one of them."""
    net = Net(56)
    if floats:
        of_floats(net, 1, FLOATS["f16"])
    else:
        attention(net, MANY[1], "of codes", rescaled=False)
    executable = built(net, "cuda -matmul=f16", '{strategy = "attention", warps = 2 : i64}')
    text = executable.get_source("ptx")
    barriers = list(re.finditer(r"\tbar(rier)?\.(cta\.)?sync[^\n]*\n", text))
    assert len(barriers) == (3 if floats else 6), "two steps of keys, values; a step in three passes, twice its end"
    for barrier in barriers:
        with pytest.raises(Fault):
            run_ptx(executable, net.inputs, text[: barrier.start()] + text[barrier.end() :])


# Without matrix units

PLAIN = "cuda -mattr=-mma", "cuda -mattr=-mma,-shuffle"
"""Threads of a team join what they have by shuffles, or through memory."""


def every_float(net: Net, repeated: int) -> list[Array]:
    """Attention of floats, with as many heads as fill a device's processors; what it is in float64."""
    wanted = list[Array]()
    for number, ((heads, *sizes), keys, width, by_rows) in enumerate(FLOATS_OF):
        queries, size = sizes
        case = (heads * repeated, queries, size), keys, width, by_rows
        wanted.append(of_floats(net, number, FLOATS["tf32"], case)[0])
    return wanted


def is_close(found: Array, wanted: Array) -> bool:
    """Within 4e-6 of the largest: sums of floats in another order, exp, and a quotient."""
    return bool(found.dtype == np.float32 and np.abs(found - wanted).max() <= 4e-6 * np.abs(wanted).max())


@pytest.mark.parametrize("target", ["cuda", pytest.param(PLAIN[1], marks=pytest.mark.ci)])
def test_floats_in_one_launch_without_matrix_units(target: str):
    net = Net(57)
    wanted = every_float(net, 4)
    model = Emulated(net.module(), target, checked=False)
    assert kernels_of(model) == ["attention"] * len(wanted)
    found = model.run(net.inputs)
    assert all(map(is_close, found, wanted))


@pytest.mark.parametrize("target", [PLAIN[0], pytest.param(PLAIN[1], marks=pytest.mark.ci)])
def test_codes_in_one_launch_without_matrix_units(target: str):
    """Heads that fill the processors; keys as rows become columns by a launch before."""
    net = Net(58)
    for number, case in enumerate((CASES[2], MANY[1])):
        attention(net, case, str(number), rescaled=bool(number % 2))
    model = check(net, target)
    assert [name for name in kernels_of(model) if name != "transpose"] == ["attention"] * 2


@pytest.mark.ci
@pytest.mark.parametrize("target", PLAIN)
def test_ptx_and_barriers_without_matrix_units(target: str):
    """Two warps share the keys of a query: the PTX interpreter faults without any barrier."""
    net = Net(59)
    want = of_floats(net, 1, FLOATS["tf32"])[0]
    executable = built(net, target, '{strategy = "attention-rows", queries = 2 : i64, team = 64 : i64}')
    (found,) = run_ptx(executable, net.inputs)[0]
    assert is_close(found, want)
    text = executable.get_source("ptx")
    barriers = list(re.finditer(r"\tbar(rier)?\.(cta\.)?sync[^\n]*\n", text))
    assert len(barriers) == (5 if target == PLAIN[0] else 3), "a maximum and a sum, of two queries; weights"
    for barrier in barriers:
        with pytest.raises(Fault):
            run_ptx(executable, net.inputs, text[: barrier.start()] + text[barrier.end() :])


@pytest.mark.ci
@pytest.mark.parametrize("target", ["opencl", pytest.param("opencl -mattr=+dot", marks=pytest.mark.slow)])
def test_one_launch_on_a_device_of_opencl(target: str):
    try:
        opencl_driver(0)
    except Unsupported as error:
        pytest.skip(str(error))
    net = Net(60)
    wanted = [of_floats(net, number, FLOATS["tf32"])[0] for number in (0, 1)]
    for number, case in enumerate((CASES[1], MANY[1])):
        attention(net, case, f"of codes {number}", rescaled=bool(number % 2))
    module = net.module()
    executable = relay.build(module, target=target)
    names = [row["kernel"].partition("_")[0] for row in executable.graph["device"]["launches"]]
    found = outputs_of(executable, *net.inputs)
    assert [name for name in names if name != "transpose"] == ["attention"] * len(found)
    assert all(map(is_close, found[: len(wanted)], wanted))
    assert all(map(equal, found[len(wanted) :], run(module, net.inputs)[len(wanted) :]))
