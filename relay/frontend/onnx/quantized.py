"""Operators on codes: quantised ones of the standard domain and those of ONNX Runtime (`com.microsoft`)."""
