"""Kernels between pages that nobody may touch: one that reads outside of its arguments is stopped at once."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np
import tvm
from tvm.relax import VMInstrumentReturnKind

ALIGNMENT = 64
"""Bytes that generated code expects arrays to begin at a multiple of."""
PROT_NONE = 0
"""What ``mprotect`` calls memory that is neither read nor written."""


def guard_kernels(machine: tvm.relax.VirtualMachine, behind: bool) -> None:
    """Let a program's kernels compute on copies of their arguments, beside forbidden pages.

    A kernel that reads or writes there is killed by SIGSEGV, and the process with it.

    Parameters
    ----------
    behind : bool
        Whether each copy ends at a forbidden page, up to 63 bytes before it where its size is no multiple
        of the alignment; it begins at one otherwise.
    """

    def instead(kernel: Any, name: str, before: bool, _: object, *arguments: Any) -> VMInstrumentReturnKind:
        if name.startswith("vm.") or not before:
            return VMInstrumentReturnKind.NO_OP
        copies = [_guarded(argument, behind) for argument in arguments]
        kernel(*copies)
        for argument, copy in zip(arguments, copies, strict=True):
            if copy is not argument:
                argument.copyfrom(copy)
        return VMInstrumentReturnKind.SKIP_RUN

    machine.set_instrument(instead)


def _guarded(argument: Any, behind: bool) -> Any:
    """Return a copy of a tensor beside a forbidden page, and anything else as it is."""
    if not isinstance(argument, tvm.runtime.Tensor):
        return argument
    size = int(np.prod(argument.shape)) * argument.dtype.itemsize
    page = mmap.PAGESIZE
    filled = -(-max(size, 1) // page) * page
    mapped = np.frombuffer(mmap.mmap(-1, filled + 2 * page), np.uint8)
    for place in (0, page + filled):
        _forbid(mapped.ctypes.data + place, page)
    start = page + ((filled - size) // ALIGNMENT * ALIGNMENT if behind else 0)
    memory = tvm.runtime.from_dlpack(mapped[start : start + size])
    return memory._create_view(argument.shape, argument.dtype).copyfrom(argument)


def _forbid(address: int, size: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), PROT_NONE):
        raise OSError(ctypes.get_errno(), "mprotect")
