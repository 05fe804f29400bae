"""Calibration: streamed, compiled, saved, resumed, spread; the result never depends on how."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay.dialects.attributes import Array
from relay.errors import InvalidArgument, Malformed
from relay.quantize import Calibration, Quantize, QuantizeAnnotate, calibrate
from tests.unit.quantize_models import Net, calibrated, samples

FEATURES = ("range", "histogram", "means", "moments")


def tiny() -> Net:
    return Net((1, 4, 4, 2))


NET = tiny()
MOD = NET.done(NET.dense(NET.flat(NET.clip(NET.conv(NET.input, 3))), 4))
ANNOTATED = QuantizeAnnotate()(MOD)
DATA = samples(6, dims=(1, 4, 4, 2))


@cache
def whole() -> Calibration:
    return calibrate(ANNOTATED, DATA, features=FEATURES)


def test_compiled_values_are_those_of_the_interpreter():
    other = calibrated(MOD, DATA)
    assert set(other.values) == set(whole().values) and whole().samples == 6
    for name, found in whole().values.items():
        assert found.low == pytest.approx(other.values[name].low, rel=1e-4, abs=1e-5)
        assert found.high == pytest.approx(other.values[name].high, rel=1e-4, abs=1e-5)
        means, wanted = found.means, other.values[name].means
        assert means is not None and wanted is not None and np.allclose(means, wanted, atol=1e-4)


def test_moments_are_sums_of_products_of_what_the_weights_see():
    found = whole().moments["layer0"]
    x = np.stack([np.pad(sample[0], ((1, 1), (1, 1), (0, 0))) for sample in DATA])
    rows = [x[n, i : i + 3, j : j + 3].reshape(-1) for n in range(6) for i in range(4) for j in range(4)]
    assert found.rows == 96 and np.allclose(found.total[0], np.stack(rows).T @ np.stack(rows), rtol=1e-4, atol=1e-4)


def test_an_iterator_is_read_as_it_is_needed():
    read: list[int] = []

    def stream() -> Iterator[Array]:
        for number, sample in enumerate(DATA):
            read.append(number)
            yield sample

    found = calibrate(ANNOTATED, stream(), limit=2)
    assert found.samples == 2 and read == [0, 1]


def test_saved_and_resumed_in_the_middle_is_identical(tmp_path: Path):
    path = tmp_path / "calibration.json"
    calibrate(ANNOTATED, DATA, features=FEATURES, limit=4, checkpoint=path)
    assert Calibration.load(path).samples == 4
    resumed = calibrate(ANNOTATED, DATA, features=FEATURES, resume=path)
    assert resumed.to_json() == whole().to_json()
    for options in ({"method": "kl"}, {"method": "moving-average"}):
        one = Quantize(calibration=resumed, rounding="adaptive", method=options["method"])(MOD)
        other = Quantize(calibration=whole(), rounding="adaptive", method=options["method"])(MOD)
        assert one.to_text(weights=True) == other.to_text(weights=True)
    whole().save(path)
    from_file = Quantize(statistics=str(path))(MOD)
    assert from_file.to_text(weights=True) == Quantize(calibration=whole())(MOD).to_text(weights=True)


def test_a_checkpoint_is_there_when_a_sample_fails(tmp_path: Path):
    path = tmp_path / "calibration.json"
    broken = [*DATA[:3], np.full((1, 4, 4, 2), np.nan, np.float32), *DATA[3:]]
    with pytest.raises(InvalidArgument, match="is not finite"):
        calibrate(ANNOTATED, broken, checkpoint=path, every=1)
    assert Calibration.load(path).samples == 3


def test_an_executor_gives_the_same_as_none():
    with ThreadPoolExecutor(2) as executor:
        found = calibrate(ANNOTATED, iter(DATA), features=FEATURES, executor=executor)
    assert found.to_json() == whole().to_json()


def test_samples_in_every_form_and_progress():
    seen: list[int] = []
    forms = [DATA[0], [DATA[1]], {"arg0": DATA[2]}, DATA[3].astype(np.float64)]
    found = calibrate(ANNOTATED, forms, features=FEATURES, progress=seen.append)
    assert found.samples == 4 and seen == [1, 2, 3, 4]
    assert found.to_json() == calibrate(ANNOTATED, DATA, features=FEATURES, limit=4).to_json()


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        (np.zeros((1, 4, 4, 3), np.float32), r"sample 0: input 'arg0' is float32\[1, 4, 4, 3\]; float32\[1, 4, 4, 2\]"),
        ({"x": DATA[0]}, "sample 0: there is no input 'x'; the inputs are arg0"),
        ([DATA[0], DATA[0]], "sample 0: has 2 arrays; the model has 1 inputs"),
    ],
)
def test_a_wrong_sample_is_named(sample: Array, message: str, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(InvalidArgument, match=message):
        calibrate(ANNOTATED, [sample])


def test_adaptive_rounding_needs_its_moments_and_helps():
    with pytest.raises(InvalidArgument, match="did not remember moments"):
        Quantize(calibration=calibrated(MOD, DATA), rounding="adaptive")(MOD)
    adaptive = Quantize(calibration=whole(), rounding="adaptive")(MOD)
    assert adaptive.to_text(weights=True) != Quantize(calibration=whole())(MOD).to_text(weights=True)


def test_a_calibration_of_something_else_is_refused(tmp_path: Path):
    net = tiny()
    other = net.done(net.dense(net.flat(net.clip(net.conv(net.input, 3))), 5))
    with pytest.raises(InvalidArgument, match="is of another module, or of other weights"):
        Quantize(calibration=whole())(other)
    empty = calibrate(other, [])
    assert calibrate(ANNOTATED, DATA[:1], resume=empty).fingerprint == whole().fingerprint
    (tmp_path / "x.json").write_text('{"format": 2}')
    with pytest.raises(Malformed, match="is no calibration that was saved"):
        Calibration.load(tmp_path / "x.json")
    with pytest.raises(InvalidArgument, match="cannot be read"):
        Calibration.load(tmp_path / "y.json")


def test_what_would_fail_late_fails_before_a_sample_runs(tmp_path: Path):
    read: list[Array] = []
    stream = (read.append(sample) or sample for sample in DATA)
    given: list[tuple[dict[str, Any], str]] = [
        ({"checkpoint": tmp_path / "none" / "x.json"}, "there is no folder .*none"),
        ({"executor": 2}, "executor: 2 is no Executor"),
        ({"limit": "5"}, "limit: is '5'"),
        ({"limit": -1}, "limit: is -1"),
    ]
    for options, message in given:
        with pytest.raises(InvalidArgument, match=message):
            calibrate(ANNOTATED, stream, **options)
    for step, message in [
        (Quantize(calibration=stream, io="code"), "io 'code' is unknown"),
        (Quantize(calibration=stream, rounding="up"), "rounding 'up' is unknown"),
        (Quantize(calibration=stream, executor=2), "executor: 2 is no Executor"),
        (Quantize(calibration=[]), "has seen no samples; give at least one"),
    ]:
        with pytest.raises(InvalidArgument, match=message):
            step(MOD)
    assert not read
    with pytest.raises(InvalidArgument, match="cannot be written"):
        whole().save(tmp_path / "none" / "x.json")
    nothing: Any = 5
    with pytest.raises(InvalidArgument, match="5 are no samples"):
        calibrate(ANNOTATED, nothing)
