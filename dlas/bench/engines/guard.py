"""Run a program that ends with the process that asked for it, whatever ends that one.

This file is run alone, as ``python guard.py FOLDER LIFE READ WRITE PROGRAM...``: it makes FOLDER, unless that
is empty, starts the program with READ and WRITE as its files 3 and 4, and waits.  When the program ends,
or when nobody holds the other end of the pipe LIFE any more, it kills what is left and deletes FOLDER.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import shutil
import signal
import sys

ENDS_S = 5.0
"""How long a program may take to end by itself once its pipes are closed."""


def main(folder: str, life: int, read: int, write: int, program: list[str]) -> int:
    """Run the program to its end, or to that of the process that asked for it."""
    os.setsid()
    # Here and not before: nobody would delete it if that process were killed in between.
    if folder:
        os.mkdir(folder, 0o700)
    guard = os.getpid()
    pid = os.fork()
    if not pid:
        _become(program, read, write, guard)
    for descriptor in {read, write}:
        os.close(descriptor)
    ended = os.pidfd_open(pid)
    select.select([ended, life], [], [])
    # The program's own pipes end with the process that asked too: a browser then closes.
    if not select.select([ended], [], [], ENDS_S)[0]:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)  # processes that the program has left behind
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
    return os.waitstatus_to_exitcode(status) & 0xFF


def _become(program: list[str], read: int, write: int, guard: int) -> None:
    """Become the program, which dies with its guard."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != guard:
        os._exit(1)
    # First to numbers that are surely others, since either may be the other one's place.
    apart = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10) for descriptor in (read, write)]
    for place, descriptor in enumerate(apart, 3):
        os.dup2(descriptor, place)
    os.closerange(5, 256)
    try:
        os.execvp(program[0], program)
    except OSError as error:
        os.write(2, f"{program[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


if __name__ == "__main__":
    given_folder, given_life, given_read, given_write, *given_program = sys.argv[1:]
    sys.exit(main(given_folder, int(given_life), int(given_read), int(given_write), given_program))
