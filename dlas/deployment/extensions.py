"""The extensions that a compiled program uses, by the kernel's names for them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tvm.target import codegen

from dlas.lowering.target import tvm_target
from dlas.stack import Target

EMITTED = re.compile(
    r"sse\w*|ssse3|pni|avx\w*|fma4?|f16c|amx\w*|xop|tbm|abm|bmi[12]|movbe|popcnt|adx|gfni"
    r"|asimd\w*|fp|fphp|sve\w*|sme\w*|i8mm|bf16|atomics|crc32"
)
"""Instructions that code generators choose themselves; others serve operating systems and ciphers."""
KERNEL_NAMES = {
    "sse3": "pni",
    "lzcnt": "abm",
    "bmi": "bmi1",
    "neon": "asimd",
    "fp-armv8": "fp",
    "dotprod": "asimddp",
    "fullfp16": "asimdhp",
    "rdm": "asimdrdm",
    "lse": "atomics",
    "crc": "crc32",
}
"""LLVM's names of extensions that the kernel calls otherwise, beside dots, dashes and underscores."""


def extensions(target: Target, flags: Iterable[str]) -> list[str]:
    """Return those of the processor's flags that a target allows the compiler to rely on.

    Parameters
    ----------
    target : Target
        Of kind ``llvm``.
    flags : iterable of str
        Of the machine that ran the program: it needs no other, or it would not have run there.
    """
    features = map(str, codegen.llvm_get_cpu_features(tvm_target(target)))
    allowed = {_plain(KERNEL_NAMES.get(name, name)) for name in features}
    return [flag for flag in flags if EMITTED.fullmatch(flag) and _plain(flag) in allowed]


def _plain(name: str) -> str:
    return re.sub(r"[._-]", "", name)
