"""Networks in ONNX."""
