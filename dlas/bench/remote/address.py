"""Where a board is reached, and with which token."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from dlas.bench.remote import tokens

PORT = 9190
"""The port of `dlas serve`: beside the ones that TVM's own servers take first."""
TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Address:
    """A server on a board."""

    host: str
    """Name or number; ``127.0.0.1`` at this end of an SSH tunnel."""
    port: int
    key: str
    """What the server calls itself."""
    token: str = field(repr=False)
    """Permits to run code there; never printed."""
    timeout_s: float = TIMEOUT_S
    """The longest session in seconds: the server ends it then."""

    @classmethod
    def of(
        cls, host: str, port: int, key: str, timeout_s: float = TIMEOUT_S, token_file: Path | None = None
    ) -> Address:
        """Return the address that a profile describes, with its token.

        Parameters
        ----------
        host, port, key, timeout_s
        token_file : Path, optional
            By default what the environment variable ``DLAS_TOKEN`` holds, or the file
            ``~/.config/dlas/tokens/KEY``; ``~`` is the user's folder.

        Raises
        ------
        Unreachable
            If there is no token.
        InputError
            If the key has other characters than names of files.
        """
        token = tokens.read(token_file.expanduser()) if token_file else tokens.of_key(key)
        return cls(host, port, key, token, timeout_s)

    def __str__(self) -> str:
        """Return key, host and port, as messages name a board."""
        return f"{self.key} at {self.host}:{self.port}"
