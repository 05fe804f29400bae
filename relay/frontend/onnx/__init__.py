"""The importer of ONNX models. Needs the package `onnx` (`pip install relay-mlir[onnx]`)."""
