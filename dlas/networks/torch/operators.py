"""What an operator that torch dispatches computes: its name, shapes and parameters."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import onnx
import torch

from dlas.networks.torch.parameters import PARAMETERS, number_type
from dlas.stack import Computation

Overload = torch._ops.OpOverload
SAME = {
    "_convolution": "conv2d",
    "convolution": "conv2d",
    "mkldnn_convolution": "conv2d",
    "addmm": "linear",
    "max_pool2d_with_indices": "max_pool2d",
    "_adaptive_avg_pool2d": "adaptive_avg_pool2d",
    "native_batch_norm": "batch_norm",
    "cudnn_batch_norm": "batch_norm",
    "_native_batch_norm_legit": "batch_norm",
    "_native_batch_norm_legit_no_training": "batch_norm",
    "_batch_norm_with_update": "batch_norm",
    "native_layer_norm": "layer_norm",
    "native_group_norm": "group_norm",
    "native_dropout": "dropout",
    "_softmax": "softmax",
    "_log_softmax": "log_softmax",
    "_to_copy": "to",
    "_scaled_dot_product_flash_attention_for_cpu": "scaled_dot_product_attention",
    "_scaled_dot_product_flash_attention": "scaled_dot_product_attention",
    "_scaled_dot_product_efficient_attention": "scaled_dot_product_attention",
    "_scaled_dot_product_attention_math": "scaled_dot_product_attention",
    "constant_pad_nd": "pad",
    "concat": "cat",
}
"""Operators that torch dispatches in some modes in place of the one that a module calls."""
NAMES = {
    "conv1d": "Conv",
    "conv2d": "Conv",
    "conv3d": "Conv",
    "conv_transpose2d": "ConvTranspose",
    "linear": "Gemm",
    "mm": "MatMul",
    "bmm": "MatMul",
    "baddbmm": "MatMul",
    "batch_norm": "BatchNormalization",
    "layer_norm": "LayerNormalization",
    "group_norm": "GroupNormalization",
    "instance_norm": "InstanceNormalization",
    "relu6": "Clip",
    "hardtanh": "Clip",
    "clamp": "Clip",
    "clamp_min": "Clip",
    "clamp_max": "Clip",
    "silu": "Swish",
    "cat": "Concat",
    "max_pool2d": "MaxPool",
    "avg_pool2d": "AveragePool",
    "mean": "ReduceMean",
    "sum": "ReduceSum",
    "amax": "ReduceMax",
    "amin": "ReduceMin",
    "scaled_dot_product_attention": "Attention",
    "embedding": "Gather",
    "gather": "GatherElements",
    "upsample_nearest2d": "Resize",
    "upsample_bilinear2d": "Resize",
    "repeat": "Tile",
    "to": "Cast",
    "max": "ReduceMax",
    "min": "ReduceMin",
}
"""ONNX's names of operators whose names in torch differ by more than case and underscores."""
CREATED = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")
"""Operators that only allocate."""


def plain_name(operator: Overload) -> str:
    """Return the name by which a module calls an operator, such as ``add`` for ``aten.add_.Tensor``."""
    name: str = operator.overloadpacket.__name__.rstrip("_")
    return SAME.get(name, name)


def describe_call(
    operator: Overload,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    result: object,
    stored: Collection[int],
) -> Computation | None:
    """Return what a call computes, without a name; None if it computes nothing.

    Nothing is what an operator does that returns a view of what it was given or memory without
    content: ``view``, ``t``, ``detach``, ``empty``, dropout in evaluation mode.

    Parameters
    ----------
    arguments, keywords
        What it was called with.
    result : object
        What it returned.
    stored : collection of int
        Addresses of the module's parameters and buffers, which are no ``inputs``.
    """
    written = next(tensors(result), None)
    given = _named(operator, arguments, keywords)
    if written is None or _computes_nothing(operator, tensors(given), written):
        return None
    read = tensors_read(operator, arguments, keywords, stored)
    name = plain_name(operator)
    computed: Computation = {
        "operator": NAMES.get(name) or _onnx_names().get(name.replace("_", ""), name),
        "inputs": [list(tensor.shape) for tensor in read],
        "output": list(written.shape),
        "types": {"output": number_type(written)},
    }
    describe = PARAMETERS.get(name)
    return {**computed, **describe(given, written)} if describe else computed


def tensors_read(
    operator: Overload, arguments: Sequence[Any], keywords: Mapping[str, Any], stored: Collection[int]
) -> list[torch.Tensor]:
    """Return the tensors that a call reads, in order, without the module's own; parameters as above."""
    given = tensors(_named(operator, arguments, keywords))
    return [tensor for tensor in given if address(tensor) not in stored]


def address(tensor: torch.Tensor) -> int:
    """Return where a tensor's storage is, which its views share; 0 where it has none."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):
        return 0  # sparse and other tensors without storage


def _named(operator: Overload, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by name, defaults included."""
    schema = operator._schema.arguments
    given = {argument.name: argument.default_value for argument in schema if argument.has_default_value()}
    return given | dict(zip((argument.name for argument in schema), arguments, strict=False)) | dict(keywords)


def tensors(value: object) -> Iterator[torch.Tensor]:
    """Yield the tensors in an argument or a result, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from tensors(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from tensors(each)


def _computes_nothing(operator: Overload, read: Iterable[torch.Tensor], written: torch.Tensor) -> bool:
    if operator.overloadpacket.__name__ in CREATED:
        return True
    within = address(written)
    return not operator._schema.is_mutable and within != 0 and any(address(each) == within for each in read)


@functools.cache
def _onnx_names() -> dict[str, str]:
    """Return the names of ONNX's operators by their letters in lower case."""
    return {schema.name.lower(): schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain}
