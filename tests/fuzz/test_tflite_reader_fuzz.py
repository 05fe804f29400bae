"""Damaged .tflite files: reading one ends in a RelayError or in a model that holds together, and soon."""

import base64
import random
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from relay.errors import RelayError
from relay.frontend.tflite.model import Model, read_model
from tests.conftest import Cases
from tests.fuzz.run_cases import run_cases

MODELS = Path(__file__).parents[2].parent / "shared" / "models"
# The smallest real files, where they are at hand, and always the small model of the reader's unit tests.
REAL = ("keras_lstm_mnist_ptq", "kws_int8", "kws_fp32", "resnet8_int8")
SMALL = zlib.decompress(
    base64.b64decode(
        """
    eNqVVD1PAkEQnds7YDHEXJDiCoorKK4wBKMmFH4VxlhY2hOIJF4iZ4KfdPw4S/wH/Bec253D2fEUmWTzmGXmzZvZ3YsB4Pbq5rAJfdAQQQwhJLjX
    A2sRoU+4T3hEeEd4GVhcEuZWwzWaxffDzEZ5jG8Hf2nEkPwC64SMxsnbRWWh0Zk4+VJXgwS3CNv+N1/OPRmmGffznj9wzbHYicI8qgNYJTFRsTMP
    Wa8u/Guh/535ivYC5q/QAjMX25EWc2kIvs/F4tSdh9UZbtDnEV4IvjehT5G+JvWtiTkS96JN2IGfpiyc41TPmO/Yf/UrgVL/SPhF3Lb6/a31J+t7
    EjP9HdFHMf++0DkruRfKnHfk6C54W0K3vA+FP19Z42fO//d/fV8JVY1K+ynOQ5f045fMX9arIqNm+VxbQDo69H4ezJ526sl8/i7Mnqf8oFKtbYrz
    6M39FVfBddA97vaY1nDNEZkpaXEufK57+XcmzQbTl+w5nYwHr+PpU/qYwReC9Dly
        """
    )
)
WORST_SECONDS = 1.0


class Seed:
    """A good file, and the offsets of its words that are not weights."""

    def __init__(self, file: bytes) -> None:
        self.file = file
        structure = np.ones(len(file), np.bool_)
        first = address(memoryview(file))
        for subgraph in read_model(file).subgraphs:
            for data in (tensor.data for tensor in subgraph.tensors if tensor.data is not None):
                structure[address(data) - first :][: len(data)] = False
        self.words: list[int] = [int(place) for place in np.flatnonzero(structure[: len(file) & ~3 : 4]) * 4]


def address(view: memoryview) -> int:
    return np.frombuffer(view, np.uint8).ctypes.data


@cache
def seeds() -> tuple[Seed, ...]:
    paths = [MODELS / f"{name}.tflite" for name in REAL]
    return tuple(Seed(file) for file in [SMALL, *(path.read_bytes() for path in paths if path.is_file())])


def truncate(seed: Seed, rng: random.Random) -> bytes:
    return seed.file[: rng.randrange(len(seed.file))]


def set_word(seed: Seed, rng: random.Random) -> bytes:
    file = bytearray(seed.file)
    at = rng.choice(seed.words)
    old = int.from_bytes(file[at : at + 4], "little")
    near = old + rng.choice((-4, -1, 1, 4, 1 << 16))
    value = rng.choice((0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, near, rng.getrandbits(32), rng.randrange(len(file))))
    file[at : at + 4] = (value & 0xFFFFFFFF).to_bytes(4, "little")
    return bytes(file)


def swap_words(seed: Seed, rng: random.Random) -> bytes:
    """Swaps two words that may be offsets: small and not 0."""
    file = bytearray(seed.file)
    offsets = [
        at for at in rng.choices(seed.words, k=200) if 0 < int.from_bytes(file[at : at + 4], "little") < len(file)
    ]
    a, b = (offsets + seed.words)[:2]
    file[a : a + 4], file[b : b + 4] = file[b : b + 4], file[a : a + 4]
    return bytes(file)


def point_elsewhere(seed: Seed, rng: random.Random) -> bytes:
    """Makes a word the offset from itself to another structural word: a table where another one is expected."""
    file = bytearray(seed.file)
    at, target = sorted(rng.choices(seed.words, k=2))
    file[at : at + 4] = (target - at).to_bytes(4, "little")
    return bytes(file)


def set_bytes(seed: Seed, rng: random.Random) -> bytes:
    file = bytearray(seed.file)
    for _ in range(rng.choice((1, 2, 8, 32))):
        at = rng.choice(seed.words) + rng.randrange(4)
        file[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return bytes(file)


def cut_out(seed: Seed, rng: random.Random) -> bytes:
    at = rng.choice(seed.words)
    return seed.file[:at] + seed.file[at + rng.choice((1, 2, 4, 8, 64)) :]


DAMAGES: tuple[Callable[[Seed, random.Random], bytes], ...] = (
    truncate,
    set_word,
    set_word,
    swap_words,
    point_elsewhere,
    set_bytes,
    cut_out,
)


def check(model: Model) -> None:
    """What read_model promises of any model it returns."""
    for subgraph in model.subgraphs:
        count = len(subgraph.tensors)
        assert all(0 <= index < count for index in subgraph.inputs + subgraph.outputs)
        for operator in subgraph.operators:
            assert operator.kind
            assert all(-1 <= index < count for index in operator.inputs + operator.intermediates)
            assert all(0 <= index < count for index in operator.outputs)
        for tensor in subgraph.tensors:
            assert all(size >= 0 for size in tensor.shape) and len(tensor.shape_signature) == len(tensor.shape)
            if tensor.quantization and tensor.quantization.details == "NONE":
                quantization = tensor.quantization
                assert np.isfinite(quantization.scale).all() and (quantization.scale >= 0).all()
                assert len(quantization.zero_point) == len(quantization.scale)
                assert len(quantization.scale) in (1, *tensor.shape[quantization.axis :][:1])
            if tensor.data is not None:
                try:
                    assert tensor.to_numpy().shape == tensor.shape
                except RelayError as error:
                    assert str(error).isprintable()


def draw(case: int) -> bytes:
    rng = random.Random(case)
    return rng.choice(DAMAGES)(rng.choice(seeds()), rng)


def end_of(file: bytes) -> str:
    """How reading it ends."""
    try:
        model = read_model(file)
    except RelayError as error:
        assert str(error).isprintable() and len(str(error)) < 2000, error
        return type(error).__name__
    check(model)
    return "read"


def test_damaged_files() -> None:
    ends = run_cases(range(600), draw, end_of, seconds=WORST_SECONDS)
    assert ends["read"] and ends["Malformed"]


@pytest.mark.fuzz
def test_many_damaged_files(cases: Cases) -> None:
    run_cases(cases(40_000), draw, end_of, seconds=WORST_SECONDS)
