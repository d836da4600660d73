"""Programs: loaded builds of TVM, torch and ONNX Runtime."""
