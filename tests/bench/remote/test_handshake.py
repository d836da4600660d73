from __future__ import annotations

import struct

import pytest

from dlas.bench.remote import handshake
from dlas.bench.remote.handshake import Malformed, Request

SIZE = handshake.HEADER.size


@pytest.mark.parametrize(
    "request_sent",
    [Request("pi4", "a-token", 5.5), Request("pi4", "a-token", asks=True), Request("pi4", "a=b==")],
)
def test_a_request_arrives_as_it_was_sent(request_sent: Request) -> None:
    sent = request_sent.encode()
    assert len(sent) == SIZE + handshake.key_length(sent[:SIZE])
    assert Request.decode(sent[SIZE:]) == request_sent


def test_what_tvms_own_clients_send_is_understood() -> None:
    assert Request.decode(b"client:pi4 -timeout=60") == Request("pi4", "", 60.0)
    assert Request.decode(f"client:{Request('pi4', 'a-token').options()} -timeout=60".encode()) == Request(
        "pi4", "a-token", 60.0
    )


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b" ", b"server:pi4", b"\xff\xfe"),
        *(b"client:pi4 -timeout=" + seconds for seconds in (b"", b"nan", b"inf", b"0", b"-1")),
    ],
)
def test_other_texts_are_no_requests(text: bytes) -> None:
    with pytest.raises(Malformed):
        Request.decode(text)


@pytest.mark.parametrize(
    ("magic", "length"),
    [(0x2F271, 10), (handshake.MAGIC, 0), (handshake.MAGIC, -1), (handshake.MAGIC, 2**30)],
)
def test_other_headers_announce_no_request(magic: int, length: int) -> None:
    with pytest.raises(Malformed):
        handshake.key_length(struct.pack("<ii", magic, length))


def test_a_request_does_not_show_its_token() -> None:
    assert "a-token" not in repr(Request("pi4", "a-token"))
