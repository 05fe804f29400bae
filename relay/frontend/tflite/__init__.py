"""The importer of TFLite: from the bytes of a `.tflite` file to a module."""
