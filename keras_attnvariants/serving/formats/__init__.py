"""Exports for other runtimes than TensorFlow: ONNX, CTranslate2, LiteRT."""
