"""What `report` says of a quantised module."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from relay.errors import InvalidArgument
from relay.interpreters import run
from relay.module import IRModule
from relay.quantize import Quantize, Report, report
from tests.unit.quantize_models import Net, calibrated, samples

NET = Net((1, 6))
MOD = NET.done(NET.dense(NET.clip(NET.dense(NET.input, 8)), 4))
DATA = samples(6, dims=(1, 6))


@cache
def quantised() -> IRModule:
    return Quantize(calibration=calibrated(MOD, DATA))(MOD)


@cache
def reported() -> Report:
    return report(MOD, quantised(), DATA)


def test_the_numbers_are_those_of_the_interpreter():
    real, other = (np.concatenate([run(mod, [x])[0] for x in DATA]).astype(np.float64) for mod in (MOD, quantised()))
    snr = 10 * np.log10(np.square(real).sum() / np.square(real - other).sum())
    assert reported().output_snr[0] == pytest.approx(snr, abs=0.1)
    assert reported().top1 == float((real.argmax(1) == other.argmax(1)).mean())
    assert reported().samples == 6 and reported().integer_macs == 1.0


def test_rows_are_the_values_the_worst_first():
    assert [row.op for row in sorted(reported().rows, key=lambda row: row.value)] == [
        "argument",
        "nn.dense",
        "nn.dense",
    ]
    snrs = [row.snr for row in reported().rows]
    assert snrs == sorted(snrs) and all(20 < snr < 70 for snr in snrs)
    assert {row.layer for row in reported().rows} == {None, 0, 1} and all(row.saturated == 0 for row in reported().rows)


def test_a_range_that_is_too_small_saturates_and_is_suggested():
    narrow = Quantize(calibration=calibrated(MOD, [x / 20 for x in DATA]))(MOD)
    found = report(MOD, narrow, DATA)
    assert max(row.saturated for row in found.rows) > 0.2 and found.output_snr[0] < reported().output_snr[0] - 10


def test_every_form(tmp_path: Path):
    worse = Report(reported().rows, reported().output_snr, reported().top1, 0.5, 6)
    data = json.loads(worse.to_json())
    assert data["integer_macs"] == 0.5 and len(data["rows"]) == 3 and "suggestions" in data
    assert "50.0%" in str(worse) and str(worse).count("nn.dense") == 2
    reported().plot(tmp_path / "x.svg")
    tree = ElementTree.parse(tmp_path / "x.svg")
    assert len(tree.findall("{http://www.w3.org/2000/svg}rect")) == 3


def test_codes_outside_are_compared_as_reals():
    codes = Quantize(calibration=calibrated(MOD, DATA), io="codes")(MOD)
    assert report(MOD, codes, DATA).output_snr == pytest.approx(reported().output_snr)


def test_what_cannot_be_compared_is_an_error():
    with pytest.raises(InvalidArgument, match="there is no sample"):
        report(MOD, quantised(), [])
    net = Net((1, 5))
    with pytest.raises(InvalidArgument, match="do not take and give tensors of the same shapes"):
        report(net.done(net.dense(net.input, 4)), quantised(), DATA)
