"""Convolution as a matrix product: every output's patch is written out as a row first (im2col)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
from tvm import te

from dlas.convolution import Conv, Tail
from dlas.schedules._loops import (
    accumulate_at,
    bind,
    is_gpu,
    only_nchw,
    output_block,
    pad,
    parallelise,
    schedule_padding,
)
from dlas.stack import Algorithm, Target


@dataclass(frozen=True)
class Gemm(Algorithm):
    """Multiply the filters [k, c r s] by the patches [p q, c r s] of the input, in NCHW.

    Patches overlap, so the input is written out up to r x s times.  A row holds
    one output's patch, so that both factors are read along their rows.  Only
    threads are used to make it faster.

    References
    ----------
    DLAS paper, sections 3.4 (GEMM) and 4.4 (the minimal schedule).
    """

    def supports(self, conv: Conv) -> str | None:
        """Return why ``conv`` is declined: only layouts other than NCHW are."""
        return only_nchw(conv)

    def pack(self, weight: npt.NDArray[Any], conv: Conv) -> tuple[npt.NDArray[Any], ...]:
        """Return the filters as a matrix [k, c / groups r s]."""
        return (weight.reshape(conv.k, -1),)

    def unpack(self, packed: Sequence[npt.NDArray[Any]], conv: Conv) -> npt.NDArray[Any]:
        """Return the weight [k, c / groups, r, s]."""
        return packed[0].reshape(conv.k, -1, conv.r, conv.s)

    def compute(self, x: Any, packed: Sequence[Any], conv: Conv, tail: Tail) -> Any:
        """Return the finished output [n, k, p, q] of ``x`` [n, c, h, w]."""
        (filters,) = packed
        patches = im2col(pad(x, conv), conv)
        filters_a_group = conv.k // conv.groups
        length = te.reduce_axis((0, filters.shape[1]), "length")

        def point(n: Any, k: Any, p: Any, q: Any) -> Any:
            patch = patches[n, k // filters_a_group, p * conv.q + q, length]
            product = filters[k, length].astype(conv.accumulator_type) * patch.astype(conv.accumulator_type)
            return te.sum(product, axis=length)

        return tail(te.compute((conv.n, conv.k, conv.p, conv.q), point, name="conv"))

    def schedule(self, schedule: Any, conv: Conv, target: Target) -> None:
        """Spread the patches, then the output's points, over threads."""
        gpu, output = is_gpu(target), output_block(schedule)
        spread = bind if gpu else parallelise
        spread(schedule, schedule.get_sblock("im2col"), 3)
        point = bind(schedule, output, 4) if gpu else parallelise(schedule, output, 3)
        accumulate_at(schedule, output, point, 1, gpu)
        schedule_padding(schedule, gpu)


def im2col(padded: Any, conv: Conv) -> Any:
    """Return the patches of ``padded`` as rows [n, groups, p q, c / groups r s], as stage ``im2col``."""
    channels, window = conv.c // conv.groups, conv.r * conv.s

    def element(n: Any, group: Any, place: Any, at: Any) -> Any:
        row = place // conv.q * conv.strides[0] + at // conv.s % conv.r * conv.dilation[0]
        column = place % conv.q * conv.strides[1] + at % conv.s * conv.dilation[1]
        return padded[n, group * channels + at // window, row, column]

    return te.compute((conv.n, conv.groups, conv.p * conv.q, channels * window), element, name="im2col")
