"""Every message of the dialects' verifiers and parsers has a case in tests/ops or tests/filecheck/errors, which checks
its words."""

from __future__ import annotations

import re

import pytest
from xdsl.utils.exceptions import ParseError, VerifyException

from relay.dialects.context import make_context
from relay.dialects.source import LocatingParser
from tests.ops.examples import FILES, invalid
from tests.unit.raise_sites import ROOT, Site, recorded, sites, told

ERRORS = ROOT / "tests" / "filecheck" / "errors"
GUARDS = {
    "raise VerifyException(message)": "what `require` itself raises",
    "expected a ranked tensor": "operands are constrained to tensors",
    "a blob has no spelling": "no dialect has the attribute, so no text reaches its parser",
    "clamps integers, not": "the type is one of codes, or constrained to integers",
    "relay.reinterpret it first": "only plug-ins have such types: tests/unit/test_dialect_plug_ins.py has the cases",
}
"""Sites that no text reaches: a second check behind a constraint, or what types ask for. Why."""


@pytest.fixture(scope="module")
def every() -> set[Site]:
    return sites("relay/dialects", ("require", "raise_error"), ("VerifyException",))


def needing_cases(every: set[Site]) -> set[Site]:
    return {site for site in every if not any(words in str(site) for words in GUARDS)}


def cases() -> list[str]:
    """The texts that a pass is not needed for."""
    files = [path.read_text() for path in sorted(ERRORS.glob("*.mlir"))]
    others = [text for file in files if " -p " not in file for text in re.split(r"^// -----$", file, flags=re.M)]
    return [*others, *(text for path in FILES for _, text in invalid(path))]


def test_every_message_has_a_case(every: set[Site]) -> None:
    wanted = needing_cases(every)
    with recorded(wanted) as reached:
        for text in cases():
            with pytest.raises((ParseError, VerifyException)):
                LocatingParser(make_context(), text, "case").parse_module().verify()
    missing = wanted - reached
    where = "write a text that is refused with it into tests/ops/KIND.mlir, below `// error: MESSAGE`"
    assert not missing, f"{told(missing, len(wanted))}\n{where}"


def test_guards_are_there(every: set[Site]) -> None:
    wanted = needing_cases(every)
    assert len(wanted) > 150 and len(every) - len(wanted) == len(GUARDS)
