"""The rows of the table of Keras layers and operations, one module per kind."""

from relay.frontend.keras.operators import activations, core, elementwise, movement, nn, recurrent
from relay.frontend.keras.table import REFUSED, TABLE

__all__ = ["REFUSED", "TABLE", "activations", "core", "elementwise", "movement", "nn", "recurrent"]
