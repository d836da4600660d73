"""One convolution and its tail, as algorithms see them.

Letters, fixed once for the whole project: batch ``n``, input channels ``c``,
height ``h``, width ``w``, filters ``k``, kernel ``r`` x ``s``, output ``p`` x ``q``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dlas.stack.bfloat16 import BFLOAT16

if TYPE_CHECKING:
    from tvm import te, tirx
    from tvm.ir import Expr


@dataclass(frozen=True)
class Conv:
    """One 2-D convolution."""

    name: str
    """The layer's name in the network, e.g. ``layer1.0.conv1``."""
    n: int
    c: int
    h: int
    w: int
    """Input: batch, channels, height, width."""
    k: int
    r: int
    s: int
    """Filters, kernel height and width; the weight is [k, c / groups, r, s]."""
    strides: tuple[int, int] = (1, 1)
    """Along height and width."""
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    """(top, left, bottom, right)."""
    dilation: tuple[int, int] = (1, 1)
    """Along height and width."""
    groups: int = 1
    padding_value: float = 0
    """Value of the padding: zero, or the zero point of a quantised input."""
    input_type: str = "float32"
    weight_type: str = "float32"
    accumulator_type: str = "float32"
    output_type: str = "float32"
    input_layout: str = "NCHW"
    output_layout: str = "NCHW"
    """``NCHW``, or blocked as ``NCHW16c``."""

    @property
    def p(self) -> int:
        """Output height."""
        top, _, bottom, _ = self.padding
        return (self.h + top + bottom - self.dilation[0] * (self.r - 1) - 1) // self.strides[0] + 1

    @property
    def q(self) -> int:
        """Output width."""
        _, left, _, right = self.padding
        return (self.w + left + right - self.dilation[1] * (self.s - 1) - 1) // self.strides[1] + 1

    @property
    def padded_type(self) -> str:
        """Type of a copy of the input: that of the sums where the input has 16 bits, to convert each once."""
        return self.accumulator_type if self.input_type in ("float16", BFLOAT16) else self.input_type

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of the input in its layout: [n, c, h, w], or [n, ceil(c / b), h, w, b]."""
        return blocked_shape((self.n, self.c, self.h, self.w), self.input_layout)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Shape of the output in its layout: [n, k, p, q], or [n, ceil(k / b), p, q, b]."""
        return blocked_shape((self.n, self.k, self.p, self.q), self.output_layout)

    @property
    def depthwise(self) -> bool:
        """Whether each filter reads one channel of its own."""
        return self.groups == self.c and self.groups > 1

    @property
    def macs(self) -> int:
        """Multiply-adds of the dense convolution, the whole batch."""
        return self.n * self.k * self.p * self.q * (self.c // self.groups) * self.r * self.s


CHANGE_LAYOUT = "change_layout"
"""Name of kernels that convert layouts; further ones get a number."""


def channel_block(layout: str) -> int:
    """Return the channels of a block: 16 for ``NCHW16c``, 0 for ``NCHW``.

    Raises
    ------
    ValueError
        If ``layout`` is neither ``NCHW`` nor ``NCHW<b>c``.
    """
    matched = re.fullmatch(r"NCHW(?:([1-9]\d*)c)?", layout)
    if matched is None:
        raise ValueError(f"layout {layout!r} is neither NCHW nor NCHW<b>c, as in NCHW16c")
    return int(matched[1] or 0)


def blocked_shape(shape: Sequence[int], layout: str) -> tuple[int, ...]:
    """Return the shape of a tensor [n, c, h, w] in ``layout``; a single channel stays single.

    The padding of the last block is undefined.
    """
    block = channel_block(layout)
    n, c, h, w = shape
    if not block:
        return n, c, h, w
    inner = 1 if c == 1 else block
    return n, -(-c // inner), h, w, inner


class Tail(Protocol):
    """Epilogue: the operators fused after a convolution (bias, residual add, activation).

    Calling it with the convolution's TE tensor, in the output's layout, returns the TE
    tensor of the final output; an empty tail returns its argument.
    """

    @property
    def operands(self) -> tuple[te.Tensor, ...]:
        """Further TE tensors that it reads."""
        ...

    def __call__(self, convolved: te.Tensor) -> te.Tensor:
        """Return the final output."""
        ...

    def scalar(
        self, value: Expr, index: Sequence[Expr], operands: Sequence[tirx.Buffer] | None = None
    ) -> Expr:
        """Return the final element for the convolution's element ``value``, for kernels TE cannot express.

        Parameters
        ----------
        index : sequence of expressions
            The element's index in the output's layout: (n, k, p, q), or
            (n, k // b, p, q, k % b).
        operands : sequence of tirx.Buffer, optional
            Buffers that a kernel written in TIR reads instead of :attr:`operands`.
        """
        ...
