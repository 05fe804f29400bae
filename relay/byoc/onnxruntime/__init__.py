"""External compiler `onnxruntime`: regions as ONNX models, run by ONNX Runtime."""
