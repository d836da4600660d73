"""Tables that are no measurements: one message, which says where, and nothing is written."""

from __future__ import annotations

import datetime
import lzma
from pathlib import Path

import pandas as pd
import pytest

from tests.fixtures.commands import Command
from tests.fixtures.rows import row, write

GOOD = {
    "dataset": "digits",
    "model": "net",
    "compiler": "tvm",
    "hardware": "board",
    "machine": "A board",
    "batch": "1",
    "latency_s": "0.5",
}


def table(*rows: dict[str, str]) -> str:
    """Return rows as CSV, by default a good one."""
    rows = rows or (GOOD,)
    return "\n".join([",".join(rows[0]), *(",".join(each.values()) for each in rows)])


def changed(**cells: str) -> str:
    """Return a good table whose only row has some other cells, or columns."""
    return table(GOOD | cells)


def without(column: str, **others: str) -> str:
    """Return a good table without a column, and with others."""
    return table({name: cell for name, cell in (GOOD | others).items() if name != column})


BAD = {
    "no unit": (
        without("latency_s", latency="0.5"),
        "column 'latency' says no unit: one of latency_s, latency_ms, latency_us, latency_ns is expected",
    ),
    "no unit of memory": (changed(peak_memory="5"), "says no unit: one of peak_memory_bytes, peak_memory_kb"),
    "negative": (
        table(GOOD, GOOD | {"latency_s": "-0.5"}),
        "line 3, column 'latency_s': '-0.5' is not positive",
    ),
    "zero": (changed(latency_s="0"), "line 2, column 'latency_s': '0' is not positive"),
    "not a number": (changed(latency_s="NaN"), "line 2, column 'latency_s': 'nan' is not a finite number"),
    "infinite": (changed(latency_s="inf"), "'inf' is not a finite number"),
    "a word": (changed(latency_s="fast"), "column 'latency_s': 'fast' is not a number"),
    "hundreds of digits": (changed(latency_s="1" + "0" * 400), "0…' is too large a number"),
    "half a batch": (changed(batch="1.5"), "column 'batch': '1.5' is not a whole number"),
    "a huge batch": (changed(batch=f"{2**63}"), "is not a whole number below 2^63"),
    "percent": (changed(accuracy="97.1"), "column 'accuracy': '97.1' is not a share from 0 to 1"),
    "no time": (changed(started="noon"), "column 'started': 'noon' is no time in ISO 8601"),
    "neither": (changed(noisy="maybe"), "column 'noisy': 'maybe' is neither true nor false"),
    "unknown column": (changed(latencys="1"), "unknown column 'latencys'; did you mean 'latency_s'?"),
    "unknown status": (changed(status="fine"), "'fine' is no status (there are: ok, unstable, failed"),
    "unknown task": (changed(task="thinking"), "'thinking' is no task (there are: inference, training)"),
    "twice": (table(GOOD, GOOD | {"latency_s": "0.6"}), "line 3: the point of line 2 again, id "),
    "no machine": (without("machine"), "has no column 'machine'"),
    "no machine in a line": (changed(machine=""), "line 2, column 'machine': a latency, and no machine"),
    "no model": (changed(model=""), "line 2: no model"),
    "no latency": (changed(latency_s=""), "line 2: status ok, and no latency_s"),
    "a label": (changed(model="net(width=2)"), "give its name as 'model_name' and its options as"),
    "another id": (changed(id="7"), "line 2, column 'id': '7' is not the id of this point"),
    "two units": (changed(latency_ms="500"), "'latency_s' and 'latency_ms' are the same quantity"),
    "two columns": (table().replace("batch", "latency_s"), "has two columns 'latency_s'"),
    "no technique": (
        changed(compression_name="weight_pruning+int8", **{"compression.level": "0.5"}),
        "column 'compression.level' names no technique of the chain 'weight_pruning+int8'",
    ),
    "short": (f"{table()}\ndigits,net", "line 3: 2 cells, and the header names 7"),
    "a quote": (changed(model='"net'), "unexpected end of data"),
    "semicolons": (table().replace(",", ";"), "separated by semicolons"),
    "samples": (changed(latency_samples_s="0.5"), "is not a list of seconds, which Parquet can hold"),
    "empty": ("", "is empty: its first line names the columns"),
    "no rows": (table().splitlines()[0], "holds no rows"),
}


def refused(dlas_here: Command, *words: str) -> str:
    """Return the one message with which a command refuses its input, and leaves nothing behind."""
    before = sorted(Path.cwd().rglob("*"))
    done = dlas_here(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("dlas: ") and done.stderr.count("\n") == 1
    assert sorted(Path.cwd().rglob("*")) == before
    return done.stderr


@pytest.mark.parametrize(("text", "says"), BAD.values(), ids=BAD)
def test_a_bad_table_is_refused(tmp_path: Path, dlas_here: Command, text: str, says: str) -> None:
    (tmp_path / "measured.csv").write_text(text)
    message = refused(dlas_here, "import", "measured.csv", "--out", "rows")
    assert "measured.csv" in message and says in message


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("latin.csv", changed(model="n\xe9t").encode("latin-1"), "latin.csv, line 2: 'utf-8' codec"),
        ("bomb.csv.xz", lzma.compress(bytes(17 << 20)), "unpacks to more than 16,777,216 bytes"),
        ("cut.csv.xz", lzma.compress(table().encode())[:-9], "cannot be unpacked"),
        ("text.parquet", b"PAR1", "cannot be read as Parquet"),
        ("rows.xlsx", b"", "(there are: .csv, .csv.xz, .parquet)"),
    ],
)
def test_what_is_no_table_is_refused(
    tmp_path: Path, dlas_here: Command, name: str, content: bytes, says: str
) -> None:
    (tmp_path / name).write_bytes(content)
    assert says in refused(dlas_here, "import", name, "--out", "rows")
    assert "no file 'nowhere.csv'" in refused(dlas_here, "import", "nowhere.csv", "--out", "rows")


@pytest.mark.parametrize("option", [b"bytes", datetime.date(2026, 1, 1), datetime.timedelta(1), float("inf")])
def test_odd_options_are_refused(tmp_path: Path, dlas_here: Command, option: object) -> None:
    pd.DataFrame([GOOD | {"batch": 1, "latency_s": 0.5, "model.odd": option}]).to_parquet(
        tmp_path / "rows.parquet"
    )
    assert "is no value of an option" in refused(dlas_here, "import", "rows.parquet", "--out", "rows")


@pytest.mark.parametrize(
    ("samples", "says"),
    [
        ([0.4, 0.5, -0.7], "row 1, column 'latency_samples_s': -0.7 is not positive"),
        ([0.4, 0.6, 0.7], "row 1, column 'latency_s': 0.5 is not the median of the samples (0.6)"),
    ],
)
def test_odd_samples_are_refused(tmp_path: Path, dlas_here: Command, samples: list[float], says: str) -> None:
    cells = GOOD | {"batch": 1, "latency_s": 0.5, "latency_samples_s": samples}
    pd.DataFrame([cells]).to_parquet(tmp_path / "rows.parquet")
    assert says in refused(dlas_here, "import", "rows.parquet", "--out", "rows")


def test_a_folder_with_rows_is_not_written_to(tmp_path: Path, dlas_here: Command) -> None:
    (tmp_path / "measured.csv").write_text(table())
    write(tmp_path / "rows", [row()])
    assert "'rows' already holds rows" in refused(dlas_here, "import", "measured.csv", "--out", "rows")
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed" / "results.jsonl.xz").touch()
    assert "holds packed rows" in refused(dlas_here, "import", "measured.csv", "--out", "packed")
    assert dlas_here("import", "measured.csv", "--out", "fresh").returncode == 0
    assert "imported from 'measured.csv'" in refused(dlas_here, "import", "measured.csv", "--out", "fresh")
