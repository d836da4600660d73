"""What parts that are a subnetwork have in common: a study draws it, and a search changes and crosses it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator

from dlas.networks.subnets import written
from dlas.networks.subnets.written import Space
from dlas.stack import InputError, Part


def _known_subnet(text: str) -> str:
    written.codes([text])  # which says what is wrong
    return text


SubnetText = Annotated[str, AfterValidator(_known_subnet)]


class DrawnSubnet(Part):
    """A part with the options ``subnet`` and ``space``."""

    subnet: SubnetText
    """As :mod:`dlas.networks.subnets.written` spells it."""
    space: Space
    """Where ``subnet = "drawn"`` is drawn from."""

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Mapping[str, Any]:
        """Return a subnetwork at random, of all."""
        return {"subnet": written.draw("ofa", rng)}

    @classmethod
    def drawn_with(cls, given: Mapping[str, Any], rng: np.random.Generator) -> Mapping[str, Any]:
        """Return a subnetwork of a space at random; the space is no part of what it is."""
        return {"subnet": written.draw(given.get("space", "ofa"), rng), "space": "ofa"}

    @classmethod
    def mutated(
        cls, drawn: Mapping[str, Any], given: Mapping[str, Any], rate: float, rng: np.random.Generator
    ) -> Mapping[str, Any]:
        """Return a subnetwork with each depth, kernel size and expansion ratio drawn anew at a rate."""
        return {"subnet": written.mutated(drawn["subnet"], given.get("space", "ofa"), rate, rng)}

    @classmethod
    def crossed(
        cls,
        one: Mapping[str, Any],
        other: Mapping[str, Any],
        given: Mapping[str, Any],
        rng: np.random.Generator,
    ) -> Mapping[str, Any]:
        """Return a subnetwork each layer of which is that of one of two others."""
        return {"subnet": written.crossed(one["subnet"], other["subnet"], given.get("space", "ofa"), rng)}

    def verify(self) -> None:
        """Refuse a space beside a subnetwork that is not drawn: equal networks have equal options.

        Raises
        ------
        InputError
        """
        if self.space != "ofa":
            raise InputError(
                f"space = {self.space!r} says where subnet = 'drawn' is drawn from, and this one is "
                f"{self.subnet!r}: leave it out"
            )
