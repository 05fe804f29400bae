"""The importer of ONNX models. Needs the package `onnx` (the extra `onnx`)."""
