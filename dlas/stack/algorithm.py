"""Algorithms: how one convolution is computed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from dlas.stack.array import Array
from dlas.stack.convolution import Conv, Tail
from dlas.stack.part import Part
from dlas.stack.target import Target

if TYPE_CHECKING:
    from tvm import s_tir, te, tirx
    from tvm.ir.transform import Pass

Decisions = Mapping[str, int | str]
"""One point of a design space: the value of each decision by its name."""


class Algorithm(Part, ABC):
    """How one convolution is computed: data format, mathematics and loops.

    ``pack`` defines the data format, ``compute`` the mathematics and ``schedule`` the
    loops, so dense and sparse algorithms share one interface.
    """

    tolerance: ClassVar[float] = 1e-5
    """Largest ``max|y - reference| / max|reference|`` to accept as rounding in one float32 convolution."""
    first_sums: ClassVar[str | None] = None
    """Type in which a few products at a time are added first; None where all are added in the sums' type."""
    form_of: ClassVar[str | None] = None
    """Name of the part whose form for certain instructions this is; None for the part itself."""

    def check_layers(self, names: Collection[str]) -> None:
        """Check the names of a network's convolutions before any of them is lowered.

        Raises
        ------
        Unsupported
            If the options name layers that the network does not have.
        """

    def for_layer(self, conv: Conv, target: Target) -> Algorithm:
        """Return the algorithm for this convolution; all other methods are called on the result.

        ``conv`` is in NCHW, its padding and types as in the network.
        """
        return self

    def supports(self, conv: Conv) -> str | None:
        """Return why this convolution is declined, or None where it is supported."""
        return None

    def for_weight(self, weight: Array, conv: Conv) -> Algorithm:
        """Return the algorithm for this weight [k, c / groups, r, s], where loops depend on its zeros."""
        return self

    def layouts(self, conv: Conv, target: Target) -> tuple[str, str]:
        """Return the layouts in which this convolution reads and writes, e.g. ``NCHW16c``.

        ``conv`` is in NCHW.  Lowering converts between layouts where neighbours differ, and
        calls all other methods with ``conv.input_layout`` and ``conv.output_layout`` set.
        Blocks need not divide channels: the padding of the last block is undefined in input
        and output, so sum over ``conv.c`` channels only.
        """
        return "NCHW", "NCHW"

    def pack(self, weight: Array, conv: Conv) -> tuple[Array, ...]:
        """Return the weight [k, c / groups, r, s] as the arrays that ``compute`` reads."""
        return (weight,)

    def unpack(self, packed: Sequence[Array], conv: Conv) -> Array:
        """Return the weight [k, c / groups, r, s] that :meth:`pack` was given, up to rounding.

        Builds do not use it: it documents the format, and the contract checks test ``pack`` with it.

        Raises
        ------
        NotImplementedError
            If the algorithm has its own format and does not override this.
        """
        if [array.shape for array in packed] != [(conv.k, conv.c // conv.groups, conv.r, conv.s)]:
            raise NotImplementedError(f"{type(self).__name__} packs the weight and has no unpack to undo it")
        return packed[0]

    @abstractmethod
    def compute(
        self, x: te.Tensor, packed: Sequence[te.Tensor], conv: Conv, tail: Tail
    ) -> te.Tensor | tirx.PrimFunc:
        """Return the output of the convolution and its tail.

        Parameters
        ----------
        x : te.Tensor
            The input in ``conv.input_layout``.
        packed : sequence of te.Tensor
            One for each array that :meth:`pack` returned.

        Returns
        -------
        te.Tensor or tirx.PrimFunc
            The tensor in ``conv.output_layout``; or, where TE cannot express
            the kernel, a function of ``(x, *packed, *tail.operands, output)``.
        """

    def schedule(self, schedule: s_tir.Schedule, conv: Conv, target: Target) -> None:
        """Apply the minimal schedule in place: parallelise the kernel and nothing else."""

    def space(self, conv: Conv, target: Target) -> Sequence[Decisions]:
        """Return the points of the algorithm's own design space, the best guess for ``target`` first.

        Where it is empty, tuning uses TVM's default rules.
        """
        return ()

    def apply(self, schedule: s_tir.Schedule, conv: Conv, target: Target, decisions: Decisions) -> None:
        """Schedule the kernel in place according to one point of :meth:`space`.

        Raises
        ------
        NotImplementedError
            If the algorithm has no design space of its own.
        """
        raise NotImplementedError(f"{type(self).__name__} has no design space of its own")

    def arguments(self, weight: Array, conv: Conv) -> tuple[Array, ...] | None:
        """Return packed arrays to measure candidates with, if random ones would be invalid (CSR)."""
        return None

    def passes(self, conv: Conv, target: Target) -> Sequence[Pass]:
        """Return TIR passes to run on the scheduled kernel."""
        return ()


AlgorithmMaker = Callable[[str, Mapping[str, Any]], Algorithm]
"""Returns the algorithm of a name in studies with some options; raises InputError where there is none."""


@dataclass(frozen=True)
class AlgorithmChooser(Algorithm):
    """An algorithm that takes another one, by its name, for each convolution: :meth:`for_layer` returns it.

    Whoever makes a chooser hands it ``make``, which is no option.
    """

    make: AlgorithmMaker = field(kw_only=True, repr=False, compare=False)
    """Makes the algorithms among which it chooses."""

    @abstractmethod
    def for_layer(self, conv: Conv, target: Target) -> Algorithm:
        """Return the algorithm for this convolution, never the chooser itself."""

    def compute(self, x: te.Tensor, packed: Sequence[te.Tensor], conv: Conv, tail: Tail) -> te.Tensor:
        """Raise: the algorithm that :meth:`for_layer` returns computes the layer."""
        raise TypeError(f"{type(self).__name__} computes nothing itself; ask for_layer for {conv.name!r}")
