"""Every model at every opt_level: equal to the stored outputs of LiteRT's reference kernels."""

from __future__ import annotations

import pytest

from relay.passes import PassContext
from tests.numeric.test_models_compiled import check
from tests.numeric.test_models_interpreted import ALL, LARGE

QUICK = ("kws_int8", "ad01_fp32")
DEFAULT = (("kws_int8", 0), ("ad01_fp32", 1), ("ad01_fp32", 4))


@pytest.mark.parametrize(
    ("name", "level"),
    [
        pytest.param(
            name,
            level,
            marks=pytest.mark.slow if name not in QUICK else pytest.mark.ci if (name, level) not in DEFAULT else (),
        )
        for name in (*ALL, *LARGE)
        for level in (0, 1, 4)
    ],
)
def test_integers_are_equal_at_every_level(name: str, level: int):
    with PassContext(opt_level=level):
        check(name)
