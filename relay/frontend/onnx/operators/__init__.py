"""The rows of the table of operators, each in the file of its kind."""

from relay.frontend.onnx import quantized
from relay.frontend.onnx.operators import constants, elementwise
from relay.frontend.onnx.table import REFUSED, TABLE, row

__all__ = ["REFUSED", "TABLE", "constants", "elementwise", "quantized", "row"]
