"""Caches that grow by concatenation, written in place by streams: logits are those of ONNX Runtime, to which keys and
values of the past are given by hand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="makes the models")
pytest.importorskip("onnxruntime", reason="compares with ONNX Runtime")

import onnxruntime

import relay
from relay.errors import InvalidArgument, Unsupported
from relay.runtime import DynamicExecutable
from relay.runtime.arrays import npz_of
from relay.runtime.growing import GrowingStream
from tests.numeric.exported_decoders import LAYERS, PAST, ROOM, SIZE, WORDS, Array, Decoder

Form = tuple[bool, int, bool]
FORMS = [*((llama, bits, False) for llama in (False, True) for bits in (32, 8, 4)), (False, 32, True), (True, 4, True)]
EACH = [pytest.param(form, marks=[] if form in (FORMS[2], FORMS[6]) else [pytest.mark.ci]) for form in FORMS]
"""All forms; a build of each takes seconds."""

GPT2, LLAMA = FORMS[0], FORMS[3]
TOLERANCE = {32: 1e-5, 4: 1e-5, 8: 2e-2}
"""Of the largest logit. A code of data differs where floats that differ by a bit lie about its end."""


@cache
def built(form: Form) -> DynamicExecutable:
    found = relay.build(Decoder(*form).model(), maximum={PAST: ROOM})
    assert isinstance(found, DynamicExecutable)
    return found


def stream(form: Form) -> GrowingStream:
    found = built(form).stream()
    assert isinstance(found, GrowingStream)
    return found


class ByHand:
    """ONNX Runtime, whose outputs are given back to it."""

    def __init__(self, form: Form):
        decoder = Decoder(*form)
        runtime: Any = onnxruntime
        options = runtime.SessionOptions()
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.session = runtime.InferenceSession(decoder.model(), options)
        names = [f"past_key_values.{layer}.{name}" for layer in range(LAYERS) for name in ("key", "value")]
        self.past = {name: np.zeros((1, decoder.groups, 0, SIZE), np.float32) for name in names}

    def run(self, *given: Array) -> Array:
        names = ("input_ids", "attention_mask", "position_ids")
        logits, *present = self.session.run(None, dict(zip(names, given, strict=True)) | self.past)
        self.past = dict(zip(self.past, present, strict=True))
        return logits


def inputs(position: int, count: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """Tokens behind a position, a mask that leaves out the third of all, and positions."""
    tokens = np.random.default_rng((seed, position)).integers(0, WORDS, (1, count))
    mask = np.ones((1, position + count), np.int64)
    mask[0, 2:3] = 0
    return tokens, mask, np.arange(position, position + count)[None]


def agrees(found: Array | tuple[Array, ...], wanted: Array, form: Form) -> None:
    assert not isinstance(found, tuple) and found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=TOLERANCE[form[1]] * np.abs(wanted).max())


@pytest.mark.parametrize("form", EACH)
def test_two_hundred_steps(form: Form):
    """Behind prompts of several lengths, one after the other and alone. A length is a build; forms of 4 bits, and those
    with masks, have one less."""
    ours, theirs, position = stream(form), ByHand(form), 0
    prompts = (5, 16, 1, 5) if form in FORMS[:6] and form[1] != 4 else (5, 1, 5)
    for count in (*prompts, *[1] * 200):
        given = inputs(position, count)
        agrees(ours.run(*given), theirs.run(*given), form)
        position += count
        assert ours.position == position
    for name, array in theirs.past.items():
        agrees(ours.states[name][:, :, :position], array, form)


@pytest.mark.parametrize("form", EACH)
def test_caches_are_written_in_place(form: Form):
    """Every cache, by all builds, in the same memory."""
    ours = stream(form)
    first = ours.run(*inputs(0, 5))
    memory = ours.state("past_key_values.0.key")
    ours.run(*inputs(5, 1))
    assert np.shares_memory(memory, ours.state("past_key_values.0.key"))
    for size in (1, 5):
        pairs = built(form).variant(sequence_length=size).graph["in_place"]
        assert len(pairs) == 2 * LAYERS
    assert first is not None


@pytest.mark.parametrize("form", [EACH[0], EACH[3], *EACH[-2:]])
def test_rows_without_keys(form: Form):
    """The caller's mask leaves out the first positions: their rows see all keys alike, or none, but none behind."""
    ours, theirs = stream(form), ByHand(form)
    for count in (5, 1):
        tokens, mask, places = inputs(ours.position, count)
        mask[:, :3] = 0
        agrees(ours.run(tokens, mask, places), theirs.run(tokens, mask, places), form)


def test_reset_clone_and_states(tmp_path: Path):
    ours, theirs = stream(LLAMA), ByHand(LLAMA)
    for position in range(3):
        wanted = theirs.run(*inputs(position, 1))
        ours.run(*inputs(position, 1))
    ours.save(tmp_path / "states.npz")
    other, saved = ours.clone(), ours.states
    wanted = theirs.run(*inputs(3, 5))
    agrees(other.run(*inputs(3, 5)), wanted, LLAMA)
    assert (ours.position, other.position) == (3, 8)
    ours.reset()
    agrees(ours.run(*inputs(0, 5, 1)), ByHand(LLAMA).run(*inputs(0, 5, 1)), LLAMA)
    for go_on in (lambda: ours.set_states(saved), lambda: ours.load(tmp_path / "states.npz")):
        go_on()
        agrees(ours.run(*inputs(3, 5)), wanted, LLAMA)


def test_streams_in_threads_do_not_meet():
    form = FORMS[2]
    built(form)  # once, not by each thread

    def follow(seed: int) -> bool:
        ours, theirs, position = stream(form), ByHand(form), 0
        for count in (5, *[1] * 40):
            given = inputs(position, count, seed)
            agrees(ours.run(*given), theirs.run(*given), form)
            position += count
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(follow, range(4)))


@pytest.mark.parametrize("form", EACH)
def test_nothing_behind_the_position_is_read(form: Form):
    """NaNs there change no bit."""
    ours, other = stream(form), stream(form)
    ours.run(*inputs(0, 5))
    for count in (1, 5):
        before, given, states = ours.states, inputs(ours.position, count), ours.states
        for array in states.values():
            if array.ndim == 4:
                array[:, :, ours.position + count :] = np.nan
        other.set_states(states)
        wanted = ours.run(*given)
        np.testing.assert_array_equal(other.run(*given), wanted)
        before["past_key_values.1.value"][:, :, 1] = np.nan
        other.set_states(before)
        found = other.run(*given)
        assert not isinstance(found, tuple) and not np.array_equal(found, np.asarray(wanted))


def test_what_is_saved_runs_without_the_compiler(tmp_path: Path):
    exe = built(GPT2)
    exe.prepare(sequence_length=[1, 5])
    exe.save(tmp_path / "decoder.relay")
    loaded = relay.runtime.load(tmp_path / "decoder.relay")
    ours, other = stream(GPT2), loaded.stream()
    for count in (5, 1, 1):
        given = inputs(ours.position, count)
        np.testing.assert_array_equal(ours.run(*given), other.run(*given))


def test_what_it_says():
    exe = built(GPT2)
    assert "4 caches grow to 256 positions" in str(exe)
    said = exe.to_json()["how"][PAST]
    assert said.startswith("a state, up to 256; so are past_key_values.0.key, past_key_values.0.value, past_key")
    assert repr(stream(GPT2)) == "<GrowingStream at 0 of 256 positions>"
    assert [spec.name for spec in exe.inputs if spec.kind == "state"][-1] == PAST


@pytest.mark.parametrize("position", [-1, ROOM + 1])
def test_positions_that_caches_do_not_have(position: int, tmp_path: Path):
    ours = stream(GPT2)
    ours.run(*inputs(0, 5))
    (tmp_path / "states.npz").write_bytes(npz_of({**ours.states, PAST: np.array([position])}))
    with pytest.raises(InvalidArgument, match=f"'{PAST}': is {position}; the caches hold from 0 to 256 positions"):
        ours.set_states({PAST: np.array([position])})
    with pytest.raises(InvalidArgument, match="from 0 to 256 positions"):
        ours.load(tmp_path / "states.npz")
    assert ours.position == 5


def test_wrong_calls():
    ours = stream(GPT2)
    tokens, mask, places = inputs(0, 5)
    for given, said in (
        ((tokens, mask[:, :3], places), "'attention_mask': is 3 long .axis 1.; behind 0 positions, 5 more; give it 5"),
        ((tokens, mask, places[:, :2]), "input 'position_ids': has shape .1, 2.; .1, 5. is needed"),
        ((tokens, mask), "input 'position_ids': is not given"),
        ((tokens[0], mask, places), "input 'input_ids': has shape .5.; .1, sequence_length. is needed"),
        ((tokens, mask.astype(np.int32), places), "input 'attention_mask': has dtype int32; int64 is needed"),
    ):
        with pytest.raises(InvalidArgument, match=said):
            ours.run(*given)
    assert ours.position == 0
    ours.set_states({PAST: np.array([ROOM - 1])})
    with pytest.raises(InvalidArgument, match="stream: holds 255 of 256 positions, and 5 more do not fit; reset"):
        ours.run(*inputs(ROOM - 1, 5))
    ours.run(*inputs(ROOM - 1, 1))
    with pytest.raises(InvalidArgument, match="holds 256 of 256 positions, and 1 more do not fit"):
        ours.run(*inputs(ROOM, 1))
    with pytest.raises(Unsupported, match="run: the model has caches that grow; stream.. keeps them"):
        built(GPT2).run(*inputs(0, 1))
    with pytest.raises(InvalidArgument, match="stream: states: are those that grow, and no others; they are past_key"):
        built(GPT2).stream({"logits": "input_ids"})
    with pytest.raises(InvalidArgument, match="maximum of past.*: is 1000000000000; caches have room for at most"):
        relay.build(Decoder(*GPT2).model(), maximum={PAST: 10**12})
    with pytest.raises(InvalidArgument, match="size sequence_length: is 253; it is from 1 to 252"):
        stream(GPT2).run(*inputs(0, 253))


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
def test_a_program_of_torch():
    """Its importer must know sizes: it is imported for three lengths of the past."""
    torch: Any = pytest.importorskip("torch", exc_type=ImportError)

    class Attention(torch.nn.Module):
        def forward(self, x: Any, mask: Any, past: Any) -> Any:
            keys = torch.cat([past, x], dim=2)
            columns, rows = torch.arange(keys.shape[2]), torch.arange(x.shape[2]) + past.shape[2]
            own = mask[torch.arange(1)[:, None], columns[None]] > 0
            seen = (columns[None] <= rows[:, None]) & own[:, None]
            return torch.nn.functional.scaled_dot_product_attention(x, keys, keys, attn_mask=seen[:, None]), keys

    net, dim = Attention(), torch.export.Dim
    sizes = ({2: dim("n")}, {1: dim.AUTO}, {2: dim("past")})
    example = (torch.zeros(1, 2, 3, 16), torch.ones(1, 8), torch.zeros(1, 2, 5, 16))
    program = torch.export.export(net, example, dynamic_shapes=sizes, strict=False)
    shapes = {"x": (1, 2, "n", 16), "mask": (1, "past + n"), "past": (1, 2, "past", 16)}
    ours, past = relay.build(program, shapes=shapes, maximum={"past": 24}).stream(), torch.zeros(1, 2, 0, 16)
    for count in (5, 1, 3, 1, 5, 1):
        x, mask = torch.randn(1, 2, count, 16), torch.ones(1, past.shape[2] + count)
        mask[0, 1] = 0
        wanted, past = net(x, mask, past)
        agrees(ours.run(x.numpy(), mask.numpy()), wanted.numpy(), GPT2)
