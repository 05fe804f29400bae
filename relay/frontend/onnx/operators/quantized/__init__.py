"""Operators on codes: quantised ones of the standard domain and those of ONNX Runtime (`com.microsoft`)."""

from relay.frontend.onnx.operators.quantized import blocks, dynamic, elementwise, linear, products

__all__ = ["blocks", "dynamic", "elementwise", "linear", "products"]
