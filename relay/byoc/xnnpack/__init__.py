"""External compilers `xnnpack` and `litert`: regions become .tflite files, run by LiteRT with or without XNNPACK."""
