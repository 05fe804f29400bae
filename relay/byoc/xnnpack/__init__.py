"""External compilers `xnnpack` and `litert`: regions as .tflite files, run by LiteRT with and without XNNPACK."""
