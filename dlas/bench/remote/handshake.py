"""The first messages between desk and board: TVM's handshake, with a token, a question and reasons.

A client sends a magic number and ``client:KEY -token=T -timeout=S``; TVM's own clients do the
same, and know only the answers "welcome" and "no such key".  After the second one this server also
says why.  A client that sends ``-ask`` gets facts instead of a session, also while another has one.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass, field
from typing import Any

MAGIC = 0xFF271
"""Starts TVM's handshake; as an answer it is "welcome"."""
REFUSED = MAGIC + 2
"""TVM's "no such key"."""
MOST_KEY_BYTES = 1024
MOST_ANSWER_BYTES = 65_536
NUMBER = struct.Struct("<i")
HEADER = struct.Struct("<ii")
TIMEVAL = struct.Struct("@ll")
MARK = " -dlas"
"""Ends the name of this server, so that a client tells it from TVM's own."""


class Malformed(ValueError):
    """The bytes are not those of this handshake."""


@dataclass(frozen=True)
class Request:
    """What a client asks for."""

    key: str
    token: str = field(default="", repr=False)
    timeout_s: float | None = None
    """The longest session that it needs."""
    asks: bool = False
    """Whether it wants facts and no session."""

    def options(self) -> str:
        """Return key and options as TVM's clients send them, without the time limit that TVM adds."""
        return f"{self.key} -token={self.token}"

    def encode(self) -> bytes:
        """Return the bytes to send."""
        text = f"client:{self.options()}"
        if self.timeout_s is not None:
            text += f" -timeout={self.timeout_s}"
        if self.asks:
            text += " -ask"
        return HEADER.pack(MAGIC, len(text.encode())) + text.encode()

    @classmethod
    def decode(cls, content: bytes) -> Request:
        """Return the request in the bytes after the header.

        Raises
        ------
        Malformed
        """
        try:
            name, *options = content.decode("ascii").split()
        except (UnicodeDecodeError, ValueError):
            raise Malformed("no key") from None
        if not name.startswith("client:"):
            raise Malformed("not a client")
        values = dict(option.lstrip("-").partition("=")[::2] for option in options)
        return cls(
            name.removeprefix("client:"),
            values.get("token", ""),
            _seconds(values["timeout"]) if "timeout" in values else None,
            "ask" in values,
        )


def key_length(header: bytes) -> int:
    """Return how many bytes follow the header of a request.

    Raises
    ------
    Malformed
        If it is no header, or announces more than :data:`MOST_KEY_BYTES`.
    """
    magic, length = HEADER.unpack(header)
    if magic != MAGIC or not 0 < length <= MOST_KEY_BYTES:
        raise Malformed("not TVM's handshake")
    return int(length)


def welcome(key: str) -> bytes:
    """Return the answer that begins a session."""
    return NUMBER.pack(MAGIC) + _sized(f"server:{key}{MARK}".encode())


def facts(key: str, values: dict[str, Any]) -> bytes:
    """Return the answer to a question."""
    return welcome(key) + _sized(json.dumps(values).encode())


def refusal(reason: str) -> bytes:
    """Return the answer to a client that gets no session."""
    return NUMBER.pack(REFUSED) + _sized(json.dumps({"reason": reason}).encode())


def _sized(content: bytes) -> bytes:
    return NUMBER.pack(len(content)) + content


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        raise Malformed("no number of seconds") from None
    if not (math.isfinite(seconds) and seconds > 0):
        raise Malformed("no number of seconds")
    return seconds
