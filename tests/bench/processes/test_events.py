from __future__ import annotations

import pytest

from dlas.bench.processes.events import (
    ChildEnd,
    GiveTurn,
    Message,
    Pause,
    Resume,
    Said,
    Start,
    Task,
    TaskEnd,
    TaskError,
    TaskReturn,
    TurnRequest,
    decode,
    encode,
)

TASK = Task(
    "module:function",
    {"content": {"model": "m"}, "none": None},
    2.5,
    ["torch"],
    ["build", "key"],
    [["network", "key"]],
)


@pytest.mark.parametrize(
    "message",
    [
        Start(1, [TASK, TASK], "log", 2**33, 2, ["dlas.stack"]),
        GiveTurn(2),
        Pause(3),
        Resume(4),
        Said(5, "line\n\u00b5"),
        TurnRequest(6),
        TaskReturn({"latency_s": [0.1, 1e-9], "bound": None}),
        TaskError("KeyError", "words", "failed", "memory"),
        TaskEnd(7, 1, 2.0, 0.5),
        ChildEnd(
            7, -9, [{}, {"error": 0.0}], [1.5, 2.0, 3.0], [0.0, 0.5, 0.0], "timeout", TaskError("A", "b")
        ),
    ],
    ids=lambda message: type(message).__name__,
)
def test_messages_cross_the_wire_as_they_were(message: Message) -> None:
    assert decode(encode(message)) == message


def test_what_json_cannot_hold_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="set"):
        encode(TaskReturn({1, 2}))
