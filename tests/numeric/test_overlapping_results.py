"""Results that overlap the inputs which die with them, in exported C under sanitizers: equal to the interpreter's."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relay
from relay.byoc.c import export_c
from relay.dialects import relay as ops
from relay.frontend import from_tflite
from relay.interpreters import run
from tests.numeric.c_sources import SANITIZED, Exported
from tests.numeric.compiled_modules import Net
from tests.unit.test_build import DIGITS

pytestmark = pytest.mark.ci
LAYERS = st.lists(
    st.tuples(
        st.sampled_from(["pointwise", "conv", "depthwise", "residual", "strided"]), st.sampled_from([3, 4, 8, 16, 17])
    ),
    min_size=2,
    max_size=5,
)


def net(seed: int, size: tuple[int, int], layers: list[tuple[str, int]]) -> Net:
    """A chain of convolutions, of which some are added to their inputs."""
    made, channels = Net(seed), 4
    x = made.argument(made.numbers("int8", 1, *size, channels))
    for kind, outputs in [("pointwise", 8), *layers]:
        taps = 1 if kind == "pointwise" else 3
        outputs = channels if kind in ("depthwise", "residual") else outputs
        depthwise = kind == "depthwise"
        shape = (taps, taps, 1, outputs) if depthwise else (outputs, taps, taps, channels)
        shape = (taps, taps, outputs, 1) if depthwise else shape
        sums = made.conv2d(
            x,
            made.constant(made.numbers("int8", *shape)),
            strides=(2, 2) if kind == "strided" else (1, 1),
            padding=(taps // 2,) * 4,
            groups=channels if depthwise else 1,
            zero_points=(-3, 0),
            depthwise=depthwise,
        )
        found = made.requantize(sums, outputs, "int8")
        x = made.add(ops.AddOp, [found, x], {}) if kind == "residual" else found
        channels = outputs
    made.result("x", x)
    return made


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 1000), st.tuples(st.integers(1, 9), st.integers(1, 9)), LAYERS)
def test_chains(seed: int, size: tuple[int, int], layers: list[tuple[str, int]]):
    made = net(seed, size, layers)
    module = made.module()
    with tempfile.TemporaryDirectory() as folder:
        program = Exported(module, Path(folder))
        for flags in (SANITIZED, ("-O3",)):
            program.compile("cc", flags)
            (found,), (wanted,) = program.run(made.inputs), run(module, made.inputs)
            assert np.array_equal(found, wanted)


def test_only_what_overlaps_may_alias(tmp_path: Path):
    """The third convolution of the digits, of one pixel, adds its input, whose memory its result takes."""
    export_c(from_tflite(DIGITS), tmp_path)
    text = (tmp_path / "model.c").read_text()
    heads = {head[1]: head[2] for head in re.finditer(r"static void (\w+)\(([^)]*)\)", text)}
    plain = {
        name: [n for n, part in enumerate(head.split(",")) if "restrict" not in part] for name, head in heads.items()
    }
    assert {name: arguments for name, arguments in plain.items() if arguments} == {"conv2d_2": [0, 6]}
    assert relay.build(DIGITS, "cortex-m4").graph["arena_bytes"] < 3 * 1024
