"""External compiler `onnxruntime`: regions become ONNX models, run by ONNX Runtime."""
