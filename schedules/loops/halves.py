"""Products of halves on processors that multiply vectors of them: chains, added up in float32.

Vectors of halves are twice as long as those of float32.  But a sum of halves is rounded with each product:
where n products of one size have random signs, the sum after i of them has a size of sqrt(i) of them and
is rounded by up to 2^-11 of that, so that the errors add up to about 2^-11 sqrt(n / 6) of the result.
For the 4,608 products of an output of VGG-16 that is 1.4 %, while storing it as a half costs at most 0.05 %;
for chains of 16 products it is 0.08 %.  So few products are added in float16, and the chains in float32.
"""

from __future__ import annotations

import tvm
from tvm.target import codegen

from dlas.stack import Conv, Target

HALF = "float16"
CHAIN = "chain"
"""Name of the stage of sums of a few products."""
SHORTEST_CHAIN = 4
"""Fewest products that are worth the addition of their sum."""
LONGEST_CHAIN = 16
"""Most products that are added in float16."""


def multiplies_halves(conv: Conv, target: Target) -> bool:
    """Whether a target has instructions for vectors of halves that are worth using for ``conv``.

    Those are Armv8.2's.  With AVX512-FP16 a block of 16 filters would fill half of a vector, and a thread
    of a GPU has one sum at a time: both compute in float32.
    """
    types = (conv.input_type, conv.weight_type, conv.accumulator_type)
    if types != (HALF, HALF, "float32") or not target.on_processors:
        return False
    return bool(codegen.target_has_features("fullfp16", tvm.target.Target(dict(target.description))))
