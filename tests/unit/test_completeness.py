"""Every op and every pass has all that belongs to it: its documentation, its tests, and an op its meaning."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from xdsl.ir import Dialect, Operation

from relay.dialects.byoc import Byoc
from relay.dialects.qnn import Qnn
from relay.dialects.relay import Relay
from relay.dialects.tosa import ApplyScaleOp
from relay.dialects.vector import ContractionOp, ShapeCastOp
from relay.universe import PASSES

FILECHECK = Path(__file__).parents[1] / "filecheck"
DIALECTS: list[Dialect] = [Relay, Qnn, Byoc]
OPS: list[type[Operation]] = [op for dialect in DIALECTS for op in dialect.operations]
TESTS = "\n".join(path.read_text() for path in (FILECHECK / "dialects").glob("*.mlir"))
UPSTREAM: list[type[Operation]] = [ApplyScaleOp, ContractionOp, ShapeCastOp]
"""Ops of dialects that are not ours; those of ours have their examples in tests/ops."""


def name_of(op: type[Operation]) -> str:
    return op.name


@pytest.mark.parametrize("op", UPSTREAM, ids=name_of)
def test_op_round_trips_in_a_test(op: type[Operation]):
    assert re.search(rf"// CHECK: (\S+ = )?\"?{re.escape(op.name)}\b", TESTS, re.MULTILINE)


def test_every_op_is_documented():
    assert not [op.name for op in (*OPS, *UPSTREAM) if not op.__doc__ or len(op.__doc__) < 4]


@pytest.mark.parametrize("name", PASSES)
def test_pass_has_a_filecheck_test(name: str):
    found = [path for folder in ("transforms", "lowering") for path in (FILECHECK / folder).glob(f"{name}.mlir")]
    assert len(found) == 1, f"tests/filecheck/{{transforms,lowering}}/{name}.mlir"
    runs = re.findall(r"// RUN:.*", found[0].read_text())
    assert any(re.search(rf"-p [\"']?([^|']*,)?{name}\b", run) for run in runs), "no RUN line runs the pass"


def test_every_pass_is_documented():
    classes = [factory() for factory in PASSES.values()]
    assert not [cls for cls in classes if not cls.__doc__ or cls.__doc__.startswith(f"{cls.__name__}(")]


def test_every_filecheck_test_checks():
    for path in FILECHECK.rglob("*.mlir"):
        text = path.read_text()
        assert "// RUN:" in text and "CHECK" in text, path
