"""The passes on quantised modules under Relay's names: `mod = relay.qnn.Legalize()(mod)`."""

from relay.transforms.qnn_legalize import QnnLegalize as Legalize

__all__ = ["Legalize"]
