"""Fork a process that dies with its parent, connected to it by a pipe."""

from __future__ import annotations

import ctypes
import os
import signal
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe

ASKS_THE_DRIVER = "PYTORCH_NVML_BASED_CUDA_CHECK"
"""Makes torch count GPUs, as importing TVM asks it to, without CUDA.

No fork can use CUDA once its parent has: the command line sets it before it imports anything that counts.
"""


def fork(main: Callable[[Connection], int]) -> tuple[int, Connection]:
    """Fork a process that runs ``main`` and exits without the parent's clean-up.

    Parameters
    ----------
    main : callable
        Called in the new process with its end of a pipe; returns the exit code.

    Returns
    -------
    pid : int
    connection : Connection
        The parent's end of the pipe.
    """
    ours, theirs = Pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid:
        theirs.close()
        return pid, ours
    code = 1
    try:
        ours.close()
        die_with_parent(parent)
        code = main(theirs)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def die_with_parent(parent: int) -> None:
    """Let the kernel kill this process when its parent dies; exit at once if it is already dead.

    Parameters
    ----------
    parent : int
        The parent's process id.
    """
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent or parent == 1:
        os._exit(1)
