"""The rows of the table of layers, each in the file of its kind."""

from relay.frontend.keras.operators import activations, core, elementwise, movement, nn, recurrent
from relay.frontend.keras.table import REFUSED, TABLE

__all__ = ["REFUSED", "TABLE", "activations", "core", "elementwise", "movement", "nn", "recurrent"]
