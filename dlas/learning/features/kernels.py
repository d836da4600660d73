"""Features of single kernels: shapes and parameters, and the costs that follow from them.

References
----------
MIRAGE, section 4.2: input shape and parameters, without those that follow from others.  Beyond the paper are
multiply-adds, values moved, what blocks of channels waste, density, and how many operators are fused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from dlas.learning.features.costs import padded_macs
from dlas.learning.features.totals import read, weights, written
from dlas.rows.operators import class_of
from dlas.stack import Layer

SHAPE = ("n", "c", "h", "w")
CONVOLUTION = ("k", "r", "s", "p", "q", "groups")
COLUMNS = (
    *SHAPE,
    *CONVOLUTION,
    "stride",
    "padding",
    "dilation",
    "bias",
    "inputs",
    "largest_input",
    "fused",
    "bits",
    "density",
    "macs",
    "padded_macs",
    "values",
    "weights",
    "count",
    "intensity",
)
"""Names of the columns; ``count`` is 1, ``intensity`` is multiply-adds a value."""
BITS = {"float32": 32, "float16": 16, "bfloat16": 16, "int8": 8, "uint8": 8}


def kind(kernel: Layer) -> str:
    """Return what a kernel computes: the class of a convolution, else its operator."""
    name = class_of(kernel)
    return name if kernel.get("operator") == "Conv" else str(kernel.get("operator") or name)


def kernel_features(kernels: Sequence[Layer]) -> npt.NDArray[np.float64]:
    """Return the features of kernels.

    Parameters
    ----------
    kernels : sequence of Layer

    Returns
    -------
    array [kernels, len(COLUMNS)]
        Zero where a column means nothing for a kernel.
    """
    return np.array([_values(kernel) for kernel in kernels], dtype=np.float64).reshape(-1, len(COLUMNS))


def _windows(kernel: Layer) -> tuple[Sequence[int] | None, ...]:
    """Return a kernel's strides, padding and dilation."""
    return kernel.get("strides"), kernel.get("padding"), kernel.get("dilation")


def _values(kernel: Layer) -> tuple[float, ...]:
    """Return the values of :data:`COLUMNS`."""
    shapes = kernel.get("inputs") or ()
    first = [*(shapes[0] if shapes else kernel.get("output") or ()), 1, 1, 1, 1][:4]
    macs, moved = float(kernel.get("macs") or 0), float(read(kernel) + written(kernel))
    own, sizes = float(weights(kernel)), cast(dict[str, Any], kernel)
    return (
        *first,
        *(float(sizes.get(name) or 0) for name in CONVOLUTION),
        *(float(max(values or (0,))) for values in _windows(kernel)),
        float(bool(kernel.get("bias"))),
        float(len(shapes)),
        float(max((int(np.prod(shape)) for shape in shapes), default=0)),
        float(len(kernel.get("fused") or ())),
        float(BITS.get((kernel.get("types") or {}).get("input", "float32"), 32)),
        (kernel.get("nonzeros") or 0) / own if own and kernel.get("nonzeros") is not None else 1.0,
        macs,
        padded_macs(kernel),
        moved,
        own,
        1.0,
        macs / moved if moved else 0.0,
    )
