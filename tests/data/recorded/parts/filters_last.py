"""Direct convolution that packs its weights [r, s, c, k], so that the filters of one input are contiguous."""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import te
from tvm.s_tir import Schedule

from dlas.schedules.loops.transformations import accumulate_at, output_block, pad, schedule_padding, spread
from dlas.stack import Algorithm, Array, Conv, Tail, Target


@dataclass(frozen=True)
class FiltersLast(Algorithm):
    """Sum over the kernel's positions first, then over channels."""

    def supports(self, conv: Conv) -> str | None:
        return "it has groups" if conv.groups > 1 else None

    def pack(self, weight: Array, conv: Conv) -> tuple[Array, ...]:
        return (weight.transpose(2, 3, 1, 0),)

    def unpack(self, packed: Sequence[Array], conv: Conv) -> Array:
        return packed[0].transpose(3, 2, 0, 1)

    def compute(self, x: te.Tensor, packed: Sequence[te.Tensor], conv: Conv, tail: Tail) -> te.Tensor:
        (weight,), padded = packed, pad(x, conv)
        axes = [te.reduce_axis((0, extent)) for extent in (conv.r, conv.s, conv.c)]

        def point(n, k, p, q):
            r, s, c = axes
            row, column = (
                at * stride + offset * dilation
                for at, stride, offset, dilation in zip((p, q), conv.strides, (r, s), conv.dilation)
            )
            return te.sum(padded[n, c, row, column] * weight[r, s, c, k], axis=axes)

        return tail(te.compute((conv.n, conv.k, conv.p, conv.q), point, name="conv"))

    def schedule(self, schedule: Schedule, conv: Conv, target: Target) -> None:
        output = accumulate_at(schedule, output_block(schedule), 4, target.on_gpu)
        spread(schedule, output, 4, target.on_gpu)
        schedule_padding(schedule, target.on_gpu)
