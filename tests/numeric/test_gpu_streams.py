"""Streams on GPUs, whose states stay there: results are LiteRT's, on OpenCL and on the emulated driver of NVIDIA's."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert", reason="LiteRT's schema builds these files")

import relay
from relay.errors import InvalidArgument, Unsupported
from relay.runtime import Executable
from relay.runtime.dynamic import DynamicExecutable
from relay.runtime.growing import GrowingStream
from relay.runtime.opencl_driver import driver
from tests.numeric.litert_models import Array, Reference
from tests.numeric.test_streams import MODELS, cache_of_rows, results
from tests.unit.gpu_driver import copies, emulated_cuda

TARGETS = ["opencl", "cuda"]
ALL = {**MODELS, "cache": cache_of_rows}


@cache
def built(name: str, target: str) -> Executable:
    return relay.build(ALL[name](), target=target)


@contextmanager
def on_a_device(name: str, target: str) -> Generator[Executable]:
    """A model on the devices that there are for OpenCL; for CUDA, on emulated ones."""
    executable = relay.runtime.create(*built(name, target))
    if target == "cuda":
        with emulated_cuda(executable):
            yield executable
        return
    try:
        driver(0)
    except Unsupported as error:
        pytest.skip(str(error))
    yield executable


def frames(executable: Executable, count: int) -> Array:
    return np.random.default_rng(0).integers(-128, 128, (count, *executable.inputs[0].shape), np.int8)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "integrator" else pytest.mark.ci) for name in MODELS]
)
def test_steps_equal_litert(name: str, target: str):
    reference = Reference(MODELS[name]())
    with on_a_device(name, target) as executable:
        given = frames(executable, 100 if target == "opencl" else 12)
        wanted = [reference.run([frame])[0] for frame in given]
        np.testing.assert_array_equal(results(executable.stream(), given), wanted)


@pytest.mark.parametrize("target", TARGETS)
def test_a_cache_is_updated_where_it_is(target: str):
    reference, rng = Reference(cache_of_rows()), np.random.default_rng(0)
    with on_a_device("cache", target) as executable:
        stream, whole = executable.stream(), executable.run
        state = stream.states["a"]
        for _ in range(20):
            row = rng.integers(-128, 128, (1, 1, 6)).astype(np.int8)
            start = np.array([0, int(rng.integers(-2, 12)), 3], np.int32)
            found, both = stream.run(row, start), whole(row, start, state)
            assert isinstance(both, tuple)
            np.testing.assert_array_equal(found, reference.run([row, start])[0])
            np.testing.assert_array_equal(found, both[0])
            state = both[1]
            np.testing.assert_array_equal(stream.states["a"], state)


def test_states_stay_on_the_device_and_caches_are_not_copied():
    executable, row = relay.runtime.create(*built("cache", "cuda")), np.ones((1, 1, 6), np.int8)
    with emulated_cuda(built("cache", "cuda")) as fake:
        stream = executable.stream()
        fake.calls.clear()
        for step in range(4):
            stream.run(row, np.array([0, step, 0], np.int32))
        launches = len(executable.graph["device"]["launches"])
        assert copies(fake.calls) == ["up", "up", "down"], "in the graph"
        assert fake.calls.count("cuLaunchKernel") == launches - 1 and fake.calls.count("cuGraphLaunch") == 4
        del stream, executable
        gc.collect()
        assert not fake.memory and not fake.held


@pytest.mark.parametrize("target", TARGETS)
def test_reset_clone_and_states(target: str, tmp_path: Path):
    with on_a_device("integrator", target) as executable:
        stream, given = executable.stream(), frames(executable, 9)
        wanted = results(stream, given)
        stream.reset()
        np.testing.assert_array_equal(results(stream, given[:4]), wanted[:4])
        other, kept = stream.clone(), stream.states
        stream.save(tmp_path / "states.npz")
        for each in (stream, other):
            np.testing.assert_array_equal(results(each, given[4:]), wanted[4:])
        stream.set_states(kept)
        np.testing.assert_array_equal(results(stream, given[4:]), wanted[4:])
        fresh = executable.stream()
        fresh.load(tmp_path / "states.npz")
        np.testing.assert_array_equal(results(fresh, given[4:]), wanted[4:])
        with pytest.raises(InvalidArgument, match="has shape"):
            fresh.run(given[0][0])


def test_kernels_of_one_model_outlive_another():
    with on_a_device("integrator", "opencl") as executable:
        other = relay.runtime.create(*built("recurrent", "opencl"))
        stream, given = executable.stream(), frames(executable, 2)
        other.run(frames(other, 1)[0])
        del other
        gc.collect()
        assert len(results(stream, given)) == 2


@pytest.mark.ci
@pytest.mark.parametrize("form", [(False, 32, False), (True, 4, False)])
def test_decoders_equal_onnxruntime(form: tuple[bool, int, bool]):
    """Streams of several builds, for three rows and for one, that work in the same caches."""
    pytest.importorskip("onnxruntime", reason="compares with ONNX Runtime")
    from tests.numeric.exported_decoders import PAST, ROOM, Decoder
    from tests.numeric.test_growing_caches import ByHand, agrees, inputs

    with on_a_device("cache", "opencl"):
        executable = relay.build(Decoder(*form).model(), target="opencl", maximum={PAST: ROOM})
        stream, reference = executable.stream(), ByHand(form)
        assert isinstance(stream, GrowingStream)
        for count in (3, 1, 1, 3, 1):
            given = inputs(stream.position, count)
            agrees(stream.run(*given), reference.run(*given), form)
        assert stream.position == 9


@pytest.mark.parametrize(
    "form",
    [
        pytest.param((False, 32, False), marks=pytest.mark.ci),
        pytest.param((True, 4, False), marks=pytest.mark.slow),
    ],
)
def test_a_token_of_a_decoder_is_one_graph(form: tuple[bool, int, bool]):
    """Attention reads caches that a graph's own launches write; once captured, a turn launches nothing but graphs."""
    pytest.importorskip("onnxruntime", reason="compares with ONNX Runtime")
    from tests.numeric.exported_decoders import PAST, ROOM, Decoder
    from tests.numeric.test_growing_caches import ByHand, agrees, inputs

    executable = relay.build(Decoder(*form).model(), target="cuda", maximum={PAST: ROOM})
    assert isinstance(executable, DynamicExecutable)
    builds = [executable.variant(sequence_length=count) for count in (3, 1)]
    with emulated_cuda(*builds) as fake:
        stream, reference, launched = executable.stream(), ByHand(form), list[int]()
        for count in (3, 1, 1, 1, 1):
            fake.calls.clear()
            given = inputs(len(launched) + 2 * bool(launched), count)
            agrees(stream.run(*given), reference.run(*given), form)
            assert fake.calls.count("cuGraphLaunch") == 1
            launched.append(fake.calls.count("cuLaunchKernel"))
        assert all(launched[:2]) and not any(launched[3:])
        assert set(copies(fake.calls)) == {"down"}, "inputs and results are copied in the graph"
