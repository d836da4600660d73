"""A program that this process talks to through pipes, and that ends with it."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from dlas.errors import one_line

GUARD = Path(__file__).with_name("guard.py")
CLOSES_S = 10.0
PIECE = 2**16
"""Bytes that are read at a time."""


class EngineFailed(RuntimeError):
    """The engine has ended, does not answer, or refuses what it was asked; the message says which."""


class PipedProgram:
    """Starts a program that reads messages from file 3 and writes its answers to file 4.

    Parameters
    ----------
    program : sequence of str
    delimiter : bytes
        One byte, which ends every message.
    folder : Path, optional
        What does not exist yet, is made for the program to write into, and is deleted when that has ended.
    """

    def __init__(self, program: Sequence[str], delimiter: bytes, folder: Path | None = None) -> None:
        self._delimiter, self._received = delimiter, bytearray()
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        life, self._life = os.pipe()
        passed = (life, theirs_in, theirs_out)
        self._folder = folder
        self._said = tempfile.TemporaryFile()  # noqa: SIM115, it is closed with the program
        guard = [sys.executable, "-I", "-S", str(GUARD), str(folder or ""), *map(str, passed)]
        self._guard = subprocess.Popen(
            [*guard, *program],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            pass_fds=passed,
        )
        for descriptor in passed:
            os.close(descriptor)
        self._open = True

    def send(self, message: bytes) -> None:
        """Send a message.

        Raises
        ------
        EngineFailed
            If the program has ended.
        """
        left = memoryview(message + self._delimiter)
        try:
            while left:
                left = left[os.write(self._out, left) :]
        except (BrokenPipeError, ValueError):
            raise self._ended() from None

    def receive(self, seconds: float | None = None) -> bytes:
        """Return the next message.

        Raises
        ------
        EngineFailed
            If the program has ended, or says nothing for ``seconds``.
        """
        until = None if seconds is None else time.monotonic() + seconds
        while self._delimiter not in self._received:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([self._in], [], [], left)[0]:
                raise EngineFailed(f"it has not answered within {seconds:.0f} s")
            piece = os.read(self._in, PIECE)
            if not piece:
                raise self._ended()
            self._received += piece
        message, _, rest = self._received.partition(self._delimiter)
        self._received = rest
        return bytes(message)

    def close(self) -> None:
        """End the program and wait until it has ended; a second call does nothing."""
        if not self._open:
            return
        self._open = False
        for descriptor in (self._out, self._in, self._life):
            os.close(descriptor)
        try:
            self._guard.wait(CLOSES_S)
        except subprocess.TimeoutExpired:
            self._guard.kill()  # the program dies with it
            self._guard.wait()
        self._said.close()
        if self._folder:  # left where somebody has killed the guard
            shutil.rmtree(self._folder, ignore_errors=True)

    def _ended(self) -> EngineFailed:
        """Return that the program has ended, with its exit code and what it said last."""
        try:
            code: int | str = self._guard.wait(CLOSES_S)
        except subprocess.TimeoutExpired:
            code = "unknown"
        self._said.seek(0)
        said = self._said.read().decode(errors="replace").strip().splitlines()
        last = f": {one_line(said[-1])}" if said else ""
        return EngineFailed(f"it has ended with exit code {code}{last}")
