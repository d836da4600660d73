"""Published latencies of networks and devices that do not exist here: every command reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import dlas
from dlas.face.reporting.fewer import fewer
from dlas.sweep.rows.results import read_rows
from tests.fixtures.commands import Command, runner
from tests.fixtures.package import ROOT

GPUS, PHONE = ROOT / "tests/data/ofa_gpus.csv.xz", ROOT / "tests/data/ofa_note10.csv.xz"

SAMPLED = 12
"""Networks of a sample."""
SUBNET = "555:636,573:463,35:44,757:364,7353:6436"
"""Of the first row of the phone."""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    for file in (GPUS, PHONE):
        dlas.import_rows(file, folder / file.name.partition(".")[0])
    return folder


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the first networks of both files."""
    folder = tmp_path_factory.mktemp("sample")
    for file in (GPUS, PHONE):
        table, rows = folder / file.name.removesuffix(".xz"), pd.read_csv(file, dtype=str)
        rows[rows["model.subnet"].isin(rows["model.subnet"].unique()[:SAMPLED])].to_csv(table, index=False)
        dlas.import_rows(table, folder / table.stem)
    return folder


@pytest.fixture
def dlas_there(
    imported: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    return runner(imported, monkeypatch, capsys)


@pytest.fixture
def dlas_at_sample(
    sample: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    return runner(sample, monkeypatch, capsys)


def test_parts_from_elsewhere_are_names_with_options(imported: Path) -> None:
    frame = dlas.read([imported / "ofa_gpus", imported / "ofa_note10"])
    assert len(frame) == 1700 and frame["id"].is_unique and (frame["status"] == "ok").all()
    assert frame["machine"].value_counts().to_dict() == {
        "Samsung Galaxy Note10": 500,
        **dict.fromkeys(("RTX 2080 Ti", "Titan RTX", "Titan Xp", "Tesla V100"), 300),
    }
    assert set(frame["model.width"]) == {1.2} and frame["model.subnet"].nunique() == 600
    assert set(frame["algorithm"]) == {"library"} and set(frame["hardware"]) >= {"note10", "2080ti"}


def test_every_command_reads_them(sample: Path, dlas_at_sample: Command, tmp_path: Path) -> None:
    row = next(read_rows(sample / "ofa_gpus"))
    runs = {
        ("compare", "ofa_gpus", "--axis", "hardware"): "times as fast",
        ("compare", "ofa_gpus", "--axis", "batch", "--json"): '"baseline"',
        ("observations", "ofa_gpus"): "XIII",
        ("status", "ofa_gpus"): "imported from ofa_gpus.csv",
        ("show", "ofa_gpus", row.id): "from ofa_gpus.csv, line 2 (SHA-256 ",
        ("show", "ofa_note10", "--fastest", "--where", f"model.subnet={SUBNET}"): "Samsung Galaxy Note10",
        ("export", "ofa_gpus", "--to", str(tmp_path / "rows.csv")): "",
        ("export", "ofa_gpus", "--layers", "--to", str(tmp_path / "layers.csv")): "",
    }
    for words, says in runs.items():
        done = dlas_at_sample(*words)
        assert done.returncode == 0, done.stderr
        assert says in done.stdout, words


@pytest.mark.slow
def test_of_thousands_the_first_are_printed_and_some_networks_are_on_the_page(
    imported: Path, dlas_there: Command, tmp_path: Path
) -> None:
    both = ("ofa_gpus", "ofa_note10")
    first, every = (dlas_there("table", *both, *more).stdout for more in ((), ("--all",)))
    assert [len([line for line in text.splitlines() if "(subnet=" in line]) for text in (first, every)] == [
        1000,
        1700,
    ]
    assert "1,700 points" in every and "the first 1,000 of 1,700 lines; --where" in first
    assert "--all shows all" not in dlas_there("table", "ofa_note10").stdout
    assert len(json.loads(dlas_there("table", *both, "--json").stdout)) == 1700
    page = tmp_path / "report.html"
    assert "report.html" in dlas_there("report", *both, "--out", str(page)).stdout
    assert "Of 1,700 rows of 600 networks this page shows" in page.read_text()
    frame = dlas.read([imported / name for name in both])
    shown, left_out = fewer(frame)
    per_network = frame.groupby(["dataset", "model"])["id"].transform("size")
    here = shown.groupby(["dataset", "model"])["id"].transform("size")
    assert 0 < len(shown) < 1700 and (here == per_network[shown.index]).all()
    whole, nothing = fewer(frame.head(1200))
    assert len(whole) == 1200 and not nothing and "`where=` chooses others" in left_out


def test_what_needs_their_programs_says_so(sample: Path, dlas_at_sample: Command, tmp_path: Path) -> None:
    row = next(read_rows(sample / "ofa_gpus"))
    study = ROOT / "experiments/quickstart/study.toml"
    before = (sample / "ofa_gpus" / "results.jsonl").stat()
    for words, says in (
        (
            ("deploy", "ofa_gpus", row.id, "--to", str(tmp_path / "d")),
            "imported from 'ofa_gpus.csv', and its program",
        ),
        (
            ("run", str(study), "--out", "ofa_gpus"),
            "holds rows imported from 'ofa_gpus.csv', which stay as they",
        ),
        (("run", str(study), "--out", "ofa_gpus", "--dry-run"), "holds rows imported from"),
        (("run", "ofa_gpus"), "no study.toml in 'ofa_gpus'"),
        (("choose", "ofa_gpus", "--to", str(tmp_path / "c.toml")), ""),
    ):
        done = dlas_at_sample(*words)
        assert done.returncode == 2 and says in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert (sample / "ofa_gpus" / "results.jsonl").stat() == before
    assert not list(tmp_path.iterdir())


def test_units_are_suffixes(tmp_path: Path) -> None:
    file = tmp_path / "measured.csv"
    head = "dataset,model,compiler,hardware,machine,batch"
    head += ",latency_ms,peak_memory_mib,energy_mj,build_s,first_run_us"
    file.write_text(f"\ufeff{head}\r\nd,m,c,h,A board,4,12.5,3,70,2,15000\r\n")
    (line,) = dlas.import_rows(file, tmp_path / "rows").to_dict("records")
    assert (line["latency_s"], line["peak_memory_bytes"], line["energy_j"]) == (0.0125, 3 << 20, 0.07)
    assert (line["build_s"], line["first_run_s"], line["batch"], line["seed"]) == (2, 0.015, 4, 0)
    assert (line["study"], line["compression"], line["algorithm"]) == ("measured", "none", "library")


def test_an_interval_without_samples_is_kept(tmp_path: Path, dlas_here: Command) -> None:
    (tmp_path / "measured.csv").write_text(
        "dataset,model,compiler,hardware,machine,latency_ms,latency_low_ms,latency_high_ms,samples\n"
        "d,a,c,h,A board,12,11,13,30\nd,b,c,h,A board,24,23,26,30\n"
    )
    done = dlas_here("import", "measured.csv", "--out", "rows")
    assert done.stdout.startswith("2 rows imported (2 of A board): rows")
    assert "12.00 [11.00, 13.00]" in dlas_here("table", "rows").stdout
    shown = dlas_here("show", "rows", "--fastest", "--where", "model=a").stdout
    assert "12.00 [11.00, 13.00] ms" in shown and "the samples themselves were not imported" in shown
    (first, _) = json.loads(dlas_here("table", "rows", "--json").stdout)
    assert first["samples"] == 30


def test_a_row_that_came_to_nothing_needs_no_time(tmp_path: Path) -> None:
    file = tmp_path / "measured.csv"
    file.write_text(
        "dataset,model,compiler,hardware,machine,status,reason,latency_s\n"
        'd,m,c,h,A board,failed,"out of memory,\nagain",\n'
        "d,n,c,h,,timeout,,\n"
    )
    frame = dlas.import_rows(file, tmp_path / "rows")
    assert frame["reason"].tolist()[0] == "out of memory,\nagain" and frame["latency_s"].isna().all()
    assert frame["status"].tolist() == ["failed", "timeout"]
