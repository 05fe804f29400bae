"""Passes on quantised modules: `mod = relay.qnn.Legalize()(mod)`."""

from relay.transforms.qnn_legalize import QnnLegalize as Legalize

__all__ = ["Legalize"]
