"""Export of the table of rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

from dlas.errors import InputError
from dlas.sweep.rows.columns import SAMPLES
from dlas.sweep.rows.export import export
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.results import Row
from tests.fixtures.rows import failing, row, write

ROWS = [row(compression={"name": "weight_pruning", "level": 0.8}), failing(batch=2)]


def test_parquet_gives_back_every_column_and_the_samples(tmp_path: Path) -> None:
    frame = read(write(tmp_path, ROWS))
    back = pd.read_parquet(export(frame, tmp_path / "rows.parquet"))
    assert set(back.columns) == set(frame.columns)
    assert [list(values) for values in back[SAMPLES]] == [list(values) for values in frame[SAMPLES]]
    for name in set(frame.columns) - {SAMPLES}:
        assert frame[name].isna().tolist() == back[name].isna().tolist()
    np.testing.assert_array_equal(back["latency_s"], frame["latency_s"])


def test_csv_leaves_the_samples_out(tmp_path: Path) -> None:
    frame = read(write(tmp_path, ROWS))
    back = pd.read_csv(export(frame, tmp_path / "rows.CSV"))
    assert list(back.columns) == [name for name in frame.columns if name != SAMPLES]
    assert back["compression"].tolist() == ["weight_pruning(level=0.8)", "none"]
    assert back["latency_s"][0] == frame["latency_s"][0] and back["status"].tolist() == ["ok", "failed"]


@pytest.mark.parametrize("rows", [[], [failing()]])
def test_types_do_not_depend_on_missing_values(tmp_path: Path, rows: list[Row]) -> None:
    full = export(read(write(tmp_path / "full", [row()])), tmp_path / "full.parquet")
    bare = export(read(write(tmp_path / "bare", rows)), tmp_path / "bare.parquet")
    assert pyarrow.parquet.read_schema(full).equals(pyarrow.parquet.read_schema(bare))


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    frame = read(write(tmp_path, ROWS))
    with pytest.raises(InputError, match=r"'.parquett'; did you mean '.parquet'.*there are: .csv, .parquet"):
        export(frame, tmp_path / "rows.parquett")


def test_what_is_there_is_replaced_in_one_step_or_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, target = read(write(tmp_path, ROWS)), tmp_path / "rows.csv"
    target.write_text("before")
    with monkeypatch.context() as patched:
        patched.setattr(pd.DataFrame, "to_csv", _disk_full)
        with pytest.raises(InputError, match=r"cannot write .*No space left"):
            export(frame, target)
    assert target.read_text() == "before"
    export(frame, target)
    assert target.read_text() != "before"
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


def _disk_full(frame: pd.DataFrame, path: Path, **_: object) -> None:
    path.write_text("half")
    raise OSError(28, "No space left on device")


def test_a_missing_folder_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot write .*nowhere"):
        export(read(write(tmp_path, ROWS)), tmp_path / "nowhere" / "rows.csv")
