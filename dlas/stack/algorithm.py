"""Algorithms: how one convolution is computed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from dlas.stack.array import Array
from dlas.stack.convolution import Conv, Tail
from dlas.stack.part import Part
from dlas.stack.target import Target

if TYPE_CHECKING:
    from tvm import s_tir, te, tirx
    from tvm.ir.transform import Pass

Decisions = Mapping[str, int | str]
"""One point of a design space: what was decided, by the decision's name."""


class Algorithm(Part, ABC):
    """How one convolution is computed: data format, mathematics and loops.

    ``pack`` is the data format, ``compute`` the mathematics, ``schedule`` the
    loops, so dense and sparse algorithms are the same kind of thing.
    """

    tolerance: ClassVar[float] = 1e-5
    """Largest ``max|y - reference| / max|reference|`` that rounding in one float32 convolution explains."""

    def check_layers(self, names: Collection[str]) -> None:
        """Look at the names of a network's convolutions before any of them is computed.

        Raises
        ------
        Unsupported
            If the options speak of layers that the network does not have.
        """

    def for_layer(self, conv: Conv) -> Algorithm:
        """Return the algorithm that computes this convolution; all that follows is asked of that one."""
        return self

    def supports(self, conv: Conv) -> str | None:
        """Return why this convolution is declined, or None where it is taken."""
        return None

    def for_weight(self, weight: Array, conv: Conv) -> Algorithm:
        """Return the algorithm for this weight [k, c / groups, r, s], if its zeros decide on the loops."""
        return self

    def layouts(self, conv: Conv) -> tuple[str, str]:
        """Return in which layouts this convolution is to be read and written, e.g. ``NCHW16c``.

        ``conv`` is in NCHW.  Lowering changes the layout where neighbours differ,
        and everything else is asked with ``conv.input_layout`` and
        ``conv.output_layout`` set.  Blocks need not divide channels: what the last one
        holds beyond them is undefined on both sides, and only ``conv.c`` are to be summed.
        """
        return "NCHW", "NCHW"

    def pack(self, weight: Array, conv: Conv) -> tuple[Array, ...]:
        """Return the weight [k, c / groups, r, s] as the arrays that ``compute`` reads."""
        return (weight,)

    def unpack(self, packed: Sequence[Array], conv: Conv) -> Array:
        """Return the weight [k, c / groups, r, s] that :meth:`pack` was given, up to rounding.

        No build needs it: it says what the format means, and checks hold ``pack`` to it.

        Raises
        ------
        NotImplementedError
            If the format is one's own and this does not say what it means.
        """
        if [array.shape for array in packed] != [(conv.k, conv.c // conv.groups, conv.r, conv.s)]:
            raise NotImplementedError(f"{type(self).__name__} packs the weight and has no unpack to undo it")
        return packed[0]

    @abstractmethod
    def compute(
        self, x: te.Tensor, packed: Sequence[te.Tensor], conv: Conv, tail: Tail
    ) -> te.Tensor | tirx.PrimFunc:
        """Return the finished output.

        Parameters
        ----------
        x : te.Tensor
            The input in ``conv.input_layout``.
        packed : sequence of te.Tensor
            One for each array that :meth:`pack` returned.
        conv : Conv
        tail : Tail

        Returns
        -------
        te.Tensor or tirx.PrimFunc
            The tensor in ``conv.output_layout``; or, where TE cannot express
            the kernel, a function of (x, *packed, *tail.operands, output).
        """

    def schedule(self, schedule: s_tir.Schedule, conv: Conv, target: Target) -> None:
        """Make the kernel parallel, in place (a ``tvm.s_tir.Schedule``), and nothing else."""

    def space(self, conv: Conv, target: Target) -> Sequence[Decisions]:
        """Return the points of a design space of one's own, the best guess for ``target`` first.

        Empty where there is none: tuning then has TVM's default rules only.
        """
        return ()

    def apply(self, schedule: s_tir.Schedule, conv: Conv, target: Target, decisions: Decisions) -> None:
        """Transform the loops of the kernel in place, as one point of :meth:`space` says.

        Raises
        ------
        NotImplementedError
            If there is no space of one's own.
        """
        raise NotImplementedError(f"{type(self).__name__} has no design space of its own")

    def arguments(self, weight: Array, conv: Conv) -> tuple[Array, ...] | None:
        """Return real arrays for measuring candidates where random ones would not do."""
        return None

    def passes(self, conv: Conv, target: Target) -> Sequence[Pass]:
        """Return TIR passes to run on the scheduled kernel."""
        return ()
