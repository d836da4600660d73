"""Networks in torch and ONNX: training, counting, scoring, exporting."""
