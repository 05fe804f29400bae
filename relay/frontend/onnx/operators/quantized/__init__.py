"""The rows of quantized operators: those of the standard domain and ONNX Runtime's (`com.microsoft`)."""

from relay.frontend.onnx.operators.quantized import blocks, dynamic, elementwise, linear, products

__all__ = ["blocks", "dynamic", "elementwise", "linear", "products"]
