"""Forms of algorithms that multiply by dot products: a class for each family of processors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from dlas.schedules.loops.dot_intrinsics import intrinsic
from dlas.schedules.loops.dot_products import FAMILIES, DotProducts
from dlas.stack import Algorithm, Conv, Target


class ByDotProducts(Algorithm):
    """What forms of algorithms that multiply by dot products have in common: one is chosen for a layer."""

    dots: ClassVar[DotProducts]

    def __init_subclass__(cls, **options: Any) -> None:
        """Register the intrinsics: a schedule found in another process names them."""
        super().__init_subclass__(**options)
        for lanes in cls.dots.instructions if hasattr(cls, "dots") else ():
            intrinsic(cls.dots, lanes)

    def for_layer(self, conv: Conv, target: Target) -> Algorithm:
        """Return itself, which was chosen for the layer."""
        return self


Form = TypeVar("Form", bound=ByDotProducts)


def form_by(dots: DotProducts, *bases: type[Any]) -> type[Any]:
    """Return a class that multiplies by ``dots``, derived from ``bases`` and named after the last of them."""
    named = bases[-1]
    content = {"dots": dots, "__doc__": named.__doc__, "__module__": named.__module__}
    return type(f"{named.__name__}_{dots.name}", bases, content)


def forms_of(
    written: type[Form], form: Callable[[DotProducts], DotProducts] = lambda dots: dots
) -> dict[DotProducts, type[Form]]:
    """Return a form of an algorithm for each of :data:`FAMILIES`: a class derived from ``written``.

    ``form`` gives the dot products that the class uses in place of a family's.
    """
    return {dots: form_by(form(dots), written) for dots in FAMILIES}


def words_by_filters(dots: DotProducts) -> DotProducts:
    """Return dot products whose sums are of filters and whose inputs are words."""
    return replace(dots, name=f"{dots.name}_of_words", words=True)


def words_by_columns(dots: DotProducts) -> DotProducts:
    """Return dot products whose sums are of neighbouring columns of one filter, and whose inputs are words.

    Weights are stored in the type that they are multiplied in, since one is broadcast at a time.
    """
    weights = dots.read if dots.read == "int16" else dots.weights
    return replace(dots, name=f"{dots.name}_of_columns", over="columns", words=True, weights=weights)
