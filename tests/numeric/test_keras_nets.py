"""Networks of keras.applications with random weights against Keras.

KERAS_BACKEND=jax pytest -m keras tests/numeric/test_keras_nets.py
"""

from __future__ import annotations

import pytest

from tests.numeric.keras_nets import NETS, Net, difference

pytestmark = [pytest.mark.keras, pytest.mark.filterwarnings("ignore")]
"""What warns here are the libraries that make the models."""


@pytest.mark.parametrize("compiled", [False, True], ids=["interpreted", "compiled"])
@pytest.mark.parametrize("net", NETS, ids=lambda net: f"{net.name}{'-int8' * net.quantized}")
def test_logits_are_those_of_keras(net: Net, compiled: bool) -> None:
    pytest.importorskip("keras", reason="keras makes the models")
    assert difference(net, compiled) <= 1e-5
