"""Features of single kernels: shapes and parameters, and the costs that follow from them.

References
----------
MIRAGE, section 4.2: input shape and parameters, without those that follow from others.  Beyond the paper are
multiply-adds, values moved, what blocks of channels waste, density, and how many operators are fused.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from dlas.errors import InputError
from dlas.prediction.learning.features.costs import padded_macs
from dlas.prediction.learning.features.totals import weights
from dlas.stack import Algorithm, Layer
from dlas.stack.types import Floats
from dlas.sweep.rows.operators import class_of
from dlas.sweep.study import parts
from dlas.sweep.study.parts import LIBRARY

SHAPE = ("n", "c", "h", "w")
CONVOLUTION = ("k", "r", "s", "p", "q", "groups")
WINDOWS = ("strides", "padding", "dilation")
PARAMETERS = frozenset(CONVOLUTION + WINDOWS)
WITHOUT = (0.0,) * len(PARAMETERS)
"""Values of kernels that have none of these parameters."""
COLUMNS = (
    *SHAPE,
    *CONVOLUTION,
    *("stride", "padding", "dilation"),
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
"""Names of the columns; ``count`` is 1, ``intensity`` is multiply-adds a value.

Multiply-adds are those that are computed: of algorithms that skip weights that are zero, those of the others.
"""
BITS = {"float32": 32, "float16": 16, "bfloat16": 16, "int8": 8, "uint8": 8}


def kind(kernel: Layer) -> str:
    """Return what a kernel computes: the class of a convolution, else its operator."""
    name = class_of(kernel)
    return name if kernel.get("operator") == "Conv" else str(kernel.get("operator") or name)


def kernel_features(kernels: Sequence[Layer]) -> Floats:
    """Return the features of kernels.

    Returns
    -------
    array [kernels, len(COLUMNS)]
        Zero where a column means nothing for a kernel.
    """
    return np.array([_values(kernel) for kernel in kernels], dtype=np.float64).reshape(-1, len(COLUMNS))


@functools.cache
def skips_zeros(algorithm: str | None) -> bool:
    """Return whether the loops of an algorithm depend on which weights are zero; a runtime's own do not."""
    if algorithm in (None, LIBRARY):
        return False
    try:
        return parts.find("algorithm", algorithm).cls.for_weight is not Algorithm.for_weight
    except InputError:  # of rows from elsewhere
        return False


def _values(kernel: Layer) -> tuple[float, ...]:
    """Return the values of :data:`COLUMNS`; numpy would take longer for so few numbers."""
    shapes, output = kernel.get("inputs") or (), kernel.get("output") or ()
    read = [math.prod(shape) for shape in shapes]
    moved = sum(read) + (math.prod(output) if output else 0)
    own, nonzeros, types = weights(kernel), kernel.get("nonzeros"), kernel.get("types")
    density = nonzeros / own if own and nonzeros is not None else 1.0
    left = density if skips_zeros(kernel.get("algorithm")) else 1.0
    macs = (kernel.get("macs") or 0) * left
    return (
        *(*(shapes[0] if shapes else output), 1, 1, 1, 1)[:4],
        *(WITHOUT if PARAMETERS.isdisjoint(kernel) else _parameters(kernel)),
        1.0 if kernel.get("bias") else 0.0,
        len(shapes),
        max(read, default=0),
        len(kernel.get("fused") or ()),
        BITS.get(types.get("input", "float32"), 32) if types else 32,
        density,
        macs,
        padded_macs(kernel) * left,
        moved,
        own,
        1.0,
        macs / moved if moved else 0.0,
    )


def _parameters(kernel: Layer) -> Iterator[float]:
    """Yield the parameters of a convolution or a pooling, 0 where it has none of a name."""
    sizes = cast(Mapping[str, Any], kernel)
    for name in CONVOLUTION:
        yield sizes.get(name) or 0
    for name in WINDOWS:
        yield max(sizes.get(name) or (0,))
