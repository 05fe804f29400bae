"""The rows of quantized operators: those of the standard domain and ONNX Runtime's (`com.microsoft`)."""

from __future__ import annotations

from relay.frontend.importing.tables import fill

fill(__name__, __path__)
