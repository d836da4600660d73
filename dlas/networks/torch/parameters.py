"""Parameters of the operators that torch dispatches, by the fields of a computation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from dlas.networks.operator_names import of_reduction
from dlas.stack import Computation, Types


def number_type(tensor: torch.Tensor) -> str:
    """Return the type of a tensor's values, such as ``float32``."""
    return str(tensor.dtype).removeprefix("torch.")


def _pair(value: Any) -> list[int]:
    """Return one number or two, along height and width, as two."""
    numbers = [int(each) for each in value] if isinstance(value, list | tuple) else [int(value)]
    return numbers * 2 if len(numbers) == 1 else numbers


def _images(read: torch.Tensor) -> Computation:
    """Return the letters of images [n, c, h, w]; none for other tensors."""
    if read.dim() != 4:
        return {}
    n, c, h, w = read.shape
    return {"n": n, "c": c, "h": h, "w": w}


def _convolution(given: Mapping[str, Any], written: torch.Tensor) -> Computation:
    read, weight = given["input"], given["weight"]
    types: Types = {"input": number_type(read), "weight": number_type(weight)}
    types |= {"accumulator": number_type(written), "output": number_type(written)}
    layer: Computation = {
        "types": types,
        "bias": given.get("bias") is not None,
        "groups": int(given["groups"]),
    }
    if given.get("transposed"):
        layer["operator"] = "ConvTranspose"
    if read.dim() != 4:
        return layer
    (k, per_group, r, s), (p, q) = weight.shape, written.shape[2:]
    if "operator" in layer:
        k = per_group * layer["groups"]
    else:
        layer["macs"] = written.numel() * per_group * r * s
    window: Computation = {"k": k, "r": r, "s": s, "p": p, "q": q}
    return {**layer, **_images(read), **window, **_placed(given, (r, s))}


def _placed(given: Mapping[str, Any], extents: tuple[int, int]) -> Computation:
    """Return strides, padding and dilation of a window of r by s."""
    dilation = _pair(given.get("dilation", 1))
    padding = given["padding"]
    if isinstance(padding, str):
        spans = [step * (size - 1) for step, size in zip(dilation, extents, strict=True)]
        totals = spans if padding == "same" else [0, 0]
        sides = [total // 2 for total in totals] + [total - total // 2 for total in totals]
    else:
        sides = _pair(padding) * 2
    return {"strides": _pair(given["stride"]), "padding": sides, "dilation": dilation}


def _linear(given: Mapping[str, Any], written: torch.Tensor) -> Computation:
    """Return a linear layer; without a bias it is a ``MatMul`` in ONNX."""
    if "mat1" in given:
        return {**_product(given["mat1"], written), "bias": True}
    layer: Computation = {**_product(given["input"], written), "bias": given["bias"] is not None}
    return layer if layer["bias"] else {**layer, "operator": "MatMul"}


def _matrices(given: Mapping[str, Any], written: torch.Tensor) -> Computation:
    return _product(given["batch1"] if "batch1" in given else given["self"], written)


def _product(read: torch.Tensor, written: torch.Tensor) -> Computation:
    """Return rows, inputs and outputs of a product of matrices, and its multiply-adds."""
    inputs = read.shape[-1]
    outputs = written.shape[-1] if written.dim() else 1
    rows = written.numel() // max(outputs, 1)
    return {"n": rows, "c": inputs, "k": outputs, "macs": written.numel() * inputs}


def _pool(given: Mapping[str, Any], written: torch.Tensor) -> Computation:
    r, s = _pair(given["kernel_size"])
    window: Computation = {"r": r, "s": s, "p": written.shape[-2], "q": written.shape[-1]}
    placed = _placed({**given, "stride": given["stride"] or given["kernel_size"]}, (r, s))
    return {**_images(given["self"]), **window, **placed, "ceil_mode": bool(given["ceil_mode"])}


def _adaptive_pool(given: Mapping[str, Any], written: torch.Tensor) -> Computation:
    layer: Computation = {**_images(given["self"]), "p": written.shape[-2], "q": written.shape[-1]}
    return {**layer, "operator": "GlobalAveragePool"} if math.prod(written.shape[-2:]) == 1 else layer


def _mean(given: Mapping[str, Any], written: torch.Tensor) -> Computation:
    """Return a mean over height and width that keeps them as what it is in ONNX."""
    read, axes = given["self"], given.get("dim") or []
    name = of_reduction("ReduceMean", axes, read.dim(), bool(given.get("keepdim")))
    return _adaptive_pool(given, written) if name == "GlobalAveragePool" else {}


def _norm(given: Mapping[str, Any], written: torch.Tensor) -> Computation:
    return _images(written)


def _cat(given: Mapping[str, Any], written: torch.Tensor) -> Computation:
    return {"axis": int(given["dim"]) % max(written.dim(), 1)}


PARAMETERS: dict[str, Callable[[Mapping[str, Any], torch.Tensor], Computation]] = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _convolution),
    "linear": _linear,
    **dict.fromkeys(("mm", "bmm", "matmul", "baddbmm"), _matrices),
    **dict.fromkeys(("max_pool2d", "avg_pool2d"), _pool),
    "adaptive_avg_pool2d": _adaptive_pool,
    "mean": _mean,
    "batch_norm": _norm,
    "cat": _cat,
}
"""What reads an operator's parameters from its arguments by name, and its result."""
