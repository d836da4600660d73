"""What TVM's programs are written with: the layers that each kernel computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dlas.networks.layer_names import CallNames

CONTENTS = "program.json"


def layers_of(kernels: Sequence[str], layers: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the layer of each call of a kernel, in order; the kernel's name where it has none."""
    left = {kernel: iter(layers.get(kernel, ())) for kernel in kernels}
    unnamed = CallNames()
    return [next(left[kernel], None) or unnamed.next(kernel) for kernel in kernels]
