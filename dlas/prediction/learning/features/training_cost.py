"""The costs of training a convolution by three algorithms: 42 items, 56 columns.

They are the sizes of tensors, and the memory and operations of convolution by matrix
multiplication, by FFT and by Winograd's algorithm, each for the forward pass, the gradient
with respect to the input and that with respect to the weight.  Square sizes are generalised
to height and width.  Items 29 to 42 occur once for each Winograd tile.

References
----------
perf4sight, appendix B.2.  Items 11, 22, 33 and 38 are misprinted there: 11 is the sum of the totals
(6, 7, 9) as 12 is that of the indices; 22 belongs to the gradient with respect to the input (19, 20);
33 adds the forward pass and the gradient with respect to the weight; 38 is that gradient's.
Items 3 and 4 give the size of a tensor, which its gradient has, too; here they hold both, twice what is
printed.  So item 5 is not the printed sum of the weights, their gradient and two gradients: it has the input
and the output as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from dlas.stack import Operator
from dlas.stack.types import Floats

TILES = ((4, 3), (3, 2))
"""Winograd's tiles: outputs and kernel of one dimension; cuDNN's most common ones."""


@dataclass(frozen=True)
class Convolutions:
    """Convolutions as arrays, a value each; letters as in :class:`dlas.stack.Conv`."""

    n: Floats
    c: Floats
    h: Floats
    w: Floats
    k: Floats
    r: Floats
    s: Floats
    p: Floats
    q: Floats
    groups: Floats

    @classmethod
    def of(cls, operators: Iterable[Operator]) -> Convolutions:
        """Return the convolutions among a network's operators."""
        names = [field.name for field in fields(cls)]
        rows = [[layer[name] for name in names] for layer in operators if "groups" in layer]  # type: ignore[literal-required]
        table = np.array(rows, dtype=np.float64).reshape(-1, len(names))
        return cls(*table.T)


def training_cost(operators: Sequence[Operator]) -> dict[str, float]:
    """Return the 56 columns of a network: sums over its convolutions.

    Parameters
    ----------
    operators : sequence of Operator
        Of a batch.

    Returns
    -------
    dict of str to float
        Numbers of values and of multiply-adds.
    """
    found = columns(Convolutions.of(operators))
    return dict(zip(found, np.array([*found.values()]).sum(axis=1).tolist(), strict=True))


def columns(conv: Convolutions) -> dict[str, Floats]:
    """Return the 56 columns of each convolution, by name."""
    found = {**tensors(conv), **matrix_multiplication(conv), **fft(conv)}
    for outputs, kernel in TILES:
        found |= winograd(conv, outputs, kernel)
    return found


def tensors(conv: Convolutions) -> dict[str, Floats]:
    """Return the sizes of the tensors and their gradients (items 1 to 5).

    Each of items 3 and 4 is a tensor and its gradient, and item 5 the sum of all six; as printed, 5 leaves
    the input and the output themselves out.
    """
    weight = _weight(conv) * conv.r * conv.s
    weight_gradient = conv.n * weight
    inputs = 2 * conv.n * conv.c * conv.h * conv.w
    outputs = 2 * conv.n * conv.k * conv.p * conv.q
    return {
        "weight": weight,
        "weight_gradient": weight_gradient,
        "input_and_gradient": inputs,
        "output_and_gradient": outputs,
        "tensors": weight + weight_gradient + inputs + outputs,
    }


def matrix_multiplication(conv: Convolutions) -> dict[str, Floats]:
    """Return the memory and operations of multiplying matrices of patches (items 6 to 15)."""
    in_pixels, out_pixels, kernel = conv.n * conv.h * conv.w, conv.n * conv.p * conv.q, conv.r * conv.s
    forward = out_pixels * kernel * conv.c
    weight_gradient = forward / conv.groups
    input_gradient = in_pixels * kernel * conv.c
    operations = out_pixels * kernel * _weight(conv)
    input_operations = in_pixels * kernel * conv.c * conv.k
    return {
        "im2col_forward": forward,
        "im2col_weight_gradient": weight_gradient,
        "index_forward": out_pixels,
        "im2col_input_gradient": input_gradient,
        "index_input_gradient": in_pixels,
        "im2col": forward + weight_gradient + input_gradient,
        "index": 2 * out_pixels + in_pixels,
        "gemm_operations_forward": operations,
        "gemm_operations_input_gradient": input_operations,
        "gemm_operations": 2 * operations + input_operations,
    }


def fft(conv: Convolutions) -> dict[str, Floats]:
    """Return the memory and operations of convolving by FFT (items 16 to 28)."""
    in_frequencies, out_frequencies = conv.h * (1 + conv.w), conv.p * (1 + conv.q)
    weight, image = _weight(conv), conv.h * conv.w
    weight_forward = weight * in_frequencies
    input_forward = conv.n * conv.c * in_frequencies
    output_weight_gradient = conv.n * conv.k * in_frequencies
    weight_input_gradient = weight * out_frequencies
    output_input_gradient = conv.n * conv.k * out_frequencies
    forward = weight_forward + input_forward
    input_gradient = weight_input_gradient + output_input_gradient
    weight_gradient = output_weight_gradient + input_forward
    # As printed: the third transform counts a line of the image, not the image.
    operations = _fft_operations(conv, image, image)
    input_operations = _fft_operations(conv, conv.p * conv.q, conv.p * conv.q)
    weight_operations = _fft_operations(conv, 2 * np.sqrt(image), image)
    return {
        "fft_weight_forward": weight_forward,
        "fft_input_forward": input_forward,
        "fft_output_weight_gradient": output_weight_gradient,
        "fft_weight_input_gradient": weight_input_gradient,
        "fft_output_input_gradient": output_input_gradient,
        "fft_forward": forward,
        "fft_input_gradient": input_gradient,
        "fft_weight_gradient": weight_gradient,
        "fft": forward + input_gradient + weight_gradient,
        "fft_operations_forward": operations,
        "fft_operations_input_gradient": input_operations,
        "fft_operations_weight_gradient": weight_operations,
        "fft_operations": operations + input_operations + weight_operations,
    }


def winograd(conv: Convolutions, outputs: int, kernel: int) -> dict[str, Floats]:
    """Return the memory and operations of Winograd's algorithm (items 29 to 42).

    Parameters
    ----------
    outputs, kernel : int
        Outputs and kernel of one dimension of its tile.
    """
    tile = (outputs + kernel - 1) ** 2
    weight = conv.n * _weight(conv)
    in_tiles = np.ceil(conv.h / outputs) * np.ceil(conv.w / outputs)
    out_tiles = np.ceil(conv.p / outputs) * np.ceil(conv.q / outputs)
    kernel_tiles = np.ceil(conv.r / kernel) * np.ceil(conv.s / kernel)
    gradient_tiles = np.ceil(conv.p / kernel) * np.ceil(conv.q / kernel)
    memory = _passes(
        conv.n * conv.k * in_tiles * 3 * tile,
        conv.n * conv.c * out_tiles * 3 * tile,
        weight * in_tiles * 3 * tile,
    )
    operations = _passes(
        weight * in_tiles * kernel_tiles * tile,
        weight * out_tiles * kernel_tiles * tile,
        weight * in_tiles * gradient_tiles * tile,
    )
    name = f"winograd_{outputs}x{kernel}"
    return {
        **{f"{name}_{passes}": value for passes, value in memory.items()},
        **{f"{name}_operations_{passes}": value for passes, value in operations.items()},
    }


def _passes(forward: Floats, input_gradient: Floats, weight_gradient: Floats) -> Mapping[str, Floats]:
    """Return three passes, their pairs, and the sum of the pairs."""
    pairs = {
        "forward_and_input_gradient": forward + input_gradient,
        "forward_and_weight_gradient": forward + weight_gradient,
        "gradients": weight_gradient + input_gradient,
    }
    return {
        "forward": forward,
        "input_gradient": input_gradient,
        "weight_gradient": weight_gradient,
        **pairs,
        "pairs": pairs["forward_and_input_gradient"]
        + pairs["forward_and_weight_gradient"]
        + pairs["gradients"],
    }


def _weight(conv: Convolutions) -> Floats:
    """Return the pairs of a filter and a channel that it reads."""
    return conv.k * conv.c / conv.groups


def _fft_operations(conv: Convolutions, transformed: Floats, multiplied: Floats) -> Floats:
    """Return the operations of transforms over ``transformed`` values and of products over ``multiplied``."""
    transforms = transformed * np.log2(np.sqrt(multiplied))
    tensors = conv.n * (conv.c + conv.k) + _weight(conv)
    return transforms * tensors + conv.n * conv.k * conv.c * multiplied
