"""The matrices of minimal filtering algorithms F(m, 3), and products with them written out."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from tvm import tirx
from tvm.ir import Expr

from dlas.stack import Array

KERNEL = 3
"""Rows and columns of the kernels that are transformed."""
POINTS = {2: (0, 1, -1), 4: (0, 1, -1, Fraction(1, 2), -2)}
"""Points where polynomials are evaluated, by tile; infinity is added to them."""


def transforms(tile: int) -> tuple[npt.NDArray[np.float64], ...]:
    """Return the matrices B^T, G and A^T of a tile in float64."""
    b, g, a = (matrix.astype(np.float64) for matrix in cook_toom(POINTS[tile]))
    return b, g, a


def cook_toom(places: Iterable[int | Fraction]) -> tuple[Array, ...]:
    """Return the matrices B^T, G and A^T that these points and infinity give, in fractions.

    Of a row d of m + 2 inputs, a kernel g makes the m outputs A^T ((G g) * (B^T d)).
    That is a product of polynomials, transposed: evaluate both at the points (G and
    A), multiply there, and interpolate (B, with Lagrange's denominators in G).
    """
    points = [Fraction(place) for place in places]
    others = {point: [other for other in points if other != point] for point in points}
    tile, powers = len(points) + 2 - KERNEL, range(KERNEL)
    b = [[*polynomial(others[point]), 0] for point in points]
    g = [[point**i / math.prod(point - other for other in others[point]) for i in powers] for point in points]
    a = [[*(point**i for point in points), int(i == tile - 1)] for i in range(tile)]
    return np.array([*b, polynomial(points)]), np.array([*g, [0, 0, 1]]), np.array(a)


def polynomial(roots: Iterable[Fraction]) -> Array:
    """Return the coefficients of the product of all (x - root), the constant first."""
    return functools.reduce(np.convolve, ([-root, Fraction(1)] for root in roots), np.array([Fraction(1)]))


def element(matrix: npt.NDArray[np.float64], row: Expr, values: Sequence[Expr]) -> Expr:
    """Return one element of the product of a matrix and a vector, written out without the zeros.

    Terms whose coefficients have one magnitude are added first: such sums are common to
    several rows, and LLVM computes them once where the loop over ``row`` is unrolled.
    """
    *above, last = (_sum(coefficients, values) for coefficients in matrix)
    for number in reversed(range(len(above))):
        last = tirx.Select(row == number, above[number], last)
    return last


def _sum(coefficients: npt.NDArray[np.float64], values: Sequence[Expr]) -> Expr:
    """Return the sum of coefficient times value."""
    groups: dict[float, list[tuple[float, Expr]]] = {}
    for coefficient, value in zip(coefficients, values, strict=True):
        if coefficient:
            groups.setdefault(abs(coefficient), []).append((coefficient, value))
    # The first of a group is added, never subtracted, so that equal sums look equal.
    scaled = [
        (terms[0][0], _added((coefficient / terms[0][0], value) for coefficient, value in terms))
        for terms in groups.values()
    ]
    return _added(sorted(scaled, key=lambda term: term[0] != 1))


def _added(terms: Iterable[tuple[float, Expr]]) -> Expr:
    """Return the sum of factor times value, without multiplications by 1 and -1."""
    (factor, total), *rest = terms
    if factor != 1:
        total = total * tirx.const(factor, "float32")
    for factor, value in rest:
        if factor == -1:
            total = total - value
        else:
            total = total + (value if factor == 1 else value * tirx.const(factor, "float32"))
    return total
