"""Names of operators, the same for all compilers: those of ONNX's operator set where it has one.

What ONNX has no operator for keeps the name that the runtime gives it.
"""

from __future__ import annotations

from collections.abc import Sequence

LAYOUT_CHANGE = "LayoutChange"
"""A tensor copied into blocks of channels, or back; ONNX has no layouts."""
RELAX = {
    "abs": "Abs",
    "add": "Add",
    "argmax": "ArgMax",
    "argmin": "ArgMin",
    "astype": "Cast",
    "broadcast_to": "Expand",
    "ceil": "Ceil",
    "clip": "Clip",
    "concat": "Concat",
    "cos": "Cos",
    "cumsum": "CumSum",
    "dequantize": "DequantizeLinear",
    "divide": "Div",
    "einsum": "Einsum",
    "equal": "Equal",
    "erf": "Erf",
    "exp": "Exp",
    "expand_dims": "Unsqueeze",
    "flatten": "Flatten",
    "floor": "Floor",
    "from_bfloat16": "Cast",
    "full": "ConstantOfShape",
    "full_like": "ConstantOfShape",
    "gather_elements": "GatherElements",
    "gather_nd": "GatherND",
    "greater": "Greater",
    "greater_equal": "GreaterOrEqual",
    "image.grid_sample": "GridSample",
    "image.resize2d": "Resize",
    "isnan": "IsNaN",
    "less": "Less",
    "less_equal": "LessOrEqual",
    "log": "Log",
    "logical_and": "And",
    "logical_not": "Not",
    "logical_or": "Or",
    "matmul": "MatMul",
    "max": "ReduceMax",
    "maximum": "Max",
    "mean": "ReduceMean",
    "min": "ReduceMin",
    "minimum": "Min",
    "multiply": "Mul",
    "negative": "Neg",
    "nn.adaptive_avg_pool2d": "AveragePool",
    "nn.avg_pool1d": "AveragePool",
    "nn.avg_pool2d": "AveragePool",
    "nn.avg_pool3d": "AveragePool",
    "nn.batch_flatten": "Flatten",
    "nn.batch_norm": "BatchNormalization",
    "nn.conv1d": "Conv",
    "nn.conv1d_transpose": "ConvTranspose",
    "nn.conv2d": "Conv",
    "nn.conv2d_transpose": "ConvTranspose",
    "nn.conv3d": "Conv",
    "nn.conv3d_transpose": "ConvTranspose",
    "nn.gelu": "Gelu",
    "nn.gelu_tanh": "Gelu",
    "nn.group_norm": "GroupNormalization",
    "nn.instance_norm": "InstanceNormalization",
    "nn.layer_norm": "LayerNormalization",
    "nn.leakyrelu": "LeakyRelu",
    "nn.log_softmax": "LogSoftmax",
    "nn.max_pool1d": "MaxPool",
    "nn.max_pool2d": "MaxPool",
    "nn.max_pool3d": "MaxPool",
    "nn.pad": "Pad",
    "nn.pixel_shuffle": "DepthToSpace",
    "nn.prelu": "PRelu",
    "nn.relu": "Relu",
    "nn.relu6": "Clip",
    "nn.rms_norm": "RMSNormalization",
    "nn.selu": "Selu",
    "nn.silu": "Swish",
    "nn.softmax": "Softmax",
    "nn.softplus": "Softplus",
    "one_hot": "OneHot",
    "permute_dims": "Transpose",
    "power": "Pow",
    "prod": "ReduceProd",
    "quantize": "QuantizeLinear",
    "reshape": "Reshape",
    "round": "Round",
    "scatter_elements": "ScatterElements",
    "scatter_nd": "ScatterND",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "sin": "Sin",
    "split": "Split",
    "sqrt": "Sqrt",
    "squeeze": "Squeeze",
    "strided_slice": "Slice",
    "subtract": "Sub",
    "sum": "ReduceSum",
    "take": "Gather",
    "tanh": "Tanh",
    "tile": "Tile",
    "to_bfloat16": "Cast",
    "topk": "TopK",
    "where": "Where",
    "ones": "ConstantOfShape",
    "zeros": "ConstantOfShape",
}
"""By Relax's name without ``relax.``."""
TOPI = {
    "cast": "Cast",
    "concatenate": "Concat",
    "leaky_relu": "LeakyRelu",
    "mul": "Mul",
    "transpose": "Transpose",
}
"""By the name that TVM gives a stage, where that is not Relax's."""


def of_relax(operator: str) -> str:
    """Return the name of one of Relax's operators, such as ``relax.nn.relu``; its own where ONNX has none."""
    own = operator.removeprefix("relax.")
    return RELAX.get(own, own)


def of_topi(kernel: str) -> str | None:
    """Return the operator that TVM names a stage or a kernel after, None where it is not known."""
    return TOPI.get(kernel) or RELAX.get(kernel) or RELAX.get(f"nn.{kernel}")


def of_reduction(operator: str, axes: Sequence[int], rank: int, keeps: bool) -> str:
    """Return the name of a reduction: over all of h and w, ONNX's global pooling where it keeps the axes.

    Parameters
    ----------
    operator : str
        ``ReduceMean`` or ``ReduceMax``; others keep their names.
    axes : sequence of int
        What it reduces; may count from the end.
    rank : int
        Of its input.
    keeps : bool
        Whether reduced axes are left with extent 1.
    """
    planes = {"ReduceMean": "GlobalAveragePool", "ReduceMax": "GlobalMaxPool"}
    whole = rank == 4 and keeps and {axis % rank for axis in axes} == {2, 3}
    return planes.get(operator, operator) if whole else operator
