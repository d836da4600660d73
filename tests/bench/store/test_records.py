"""Records in files are read within bounds, and refused with the place that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlas.bench.store.records import Strict, read_model
from dlas.errors import InputError


class Inner(Strict):
    seconds: float


class Outer(Strict):
    inner: Inner


def test_a_record_is_read(tmp_path: Path) -> None:
    (tmp_path / "record.json").write_text('{"inner": {"seconds": 0.5}}')
    assert read_model(tmp_path / "record.json", Outer, 100) == Outer(inner=Inner(seconds=0.5))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"inner": {"seconds": "0.5"}}', "record.json: inner.seconds: Input should be a valid number"),
        ('{"inner": {"seconds": 1.0, "hours": 0}}', "inner.hours: Extra inputs are not permitted"),
        ('{"inner": {"seconds": Infinity}}', "inner.seconds: "),
        ("{", "record.json: the file: Invalid JSON"),
        (" " * 101, "record.json has over 100 bytes"),
        (None, "cannot read .*record.json.*: No such file"),
    ],
)
def test_what_is_no_record_is_refused(text: str | None, says: str, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=says):
        read_model(path, Outer, 100)
