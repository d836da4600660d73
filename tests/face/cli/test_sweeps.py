"""``dlas run`` on some points, ahead and again, and ``dlas status``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dlas.bench.store.journal import Journal
from dlas.sweep.rows.missing import HEADING
from dlas.sweep.study.study import Study
from tests.fixtures.commands import STUBS, Command, dlas
from tests.fixtures.rows import row, write

SMALL = 'name = "small"\n[axes]\nbatch = [1, 8]\n'


@pytest.mark.slow
def test_a_study_is_looked_at_run_in_part_and_gone_on_with_from_its_folder(
    tmp_path: Path, dlas_here: Command
) -> None:
    (tmp_path / "study.toml").write_text(STUBS)
    ahead = dlas_here("run", "study.toml", "--dry-run")
    assert ahead.returncode == 0, ahead.stderr
    assert "3 points to run" in ahead.stdout and "Time: unknown" in ahead.stdout
    assert not (tmp_path / "cache").exists()

    part = dlas(tmp_path, "run", "study.toml", "--out", "out", "--where", "compiler.number == 1")
    assert part.returncode == 0, part.stderr
    assert "s: 3 points; 1 point chosen" in part.stdout
    assert "network: tests.fixtures.stubs:StubCompiler(number=1): built a stub" in part.stdout
    (done,) = re.findall(r"1/1 ok (\w{8}) tests.fixtures.stubs:StubCompiler\(number=1\): ", part.stdout)
    (tmp_path / "study.toml").unlink()
    assert "1 of 3 points has its row" in dlas_here("status", "out").stdout
    told = "out has rows of 1 of the 3 points of its study; 2 missing, to go on: dlas run out"
    assert f"{told}\n" in dlas_here("table", "out").stdout

    rest = dlas_here("run", "out", "--dry-run").stdout
    assert "2 points to run; 1 has its row (1 ok)" in rest and done not in rest
    assert re.search(r"network +0 +1", rest) and re.search(r"build +2 +0 +[\d.]+ s", rest)
    assert "Time: about" in rest and "Disk: about" in rest

    went_on = dlas(tmp_path, "run", "out")
    assert "rows written: 1 failed, 1 ok; kept from before: 1" in went_on.stdout
    (failed,) = re.findall(r"failed (\w{8}) ", went_on.stdout)
    for command in ("table out", "show out --fastest", "compare out --axis compiler", f"show out {failed}"):
        assert f"dlas {command}\n" in went_on.stdout
        said = dlas_here(*command.split())
        assert said.returncode == 0 and "of its study" not in said.stdout + said.stderr
    told = dlas_here("status", "out").stdout
    assert "3 of 3 points have their row" in told and "2 ok, 1 failed" in told
    assert "no sweep is running" in told and "last row" in told and "logs/" in told


@pytest.mark.usefixtures("same_threads_afterwards")
def test_where_all_points_failed_the_first_of_them_is_shown_and_the_exit_code_is_1(
    tmp_path: Path, dlas_here: Command
) -> None:
    (tmp_path / "study.toml").write_text(STUBS.replace("number = [0, 1]", 'trouble = "unsupported"'))
    ran = dlas_here("run", "study.toml", "--out", "out", "--in-process")
    (failed,) = re.findall(r"failed (\w{8}) ", ran.stdout)
    assert ran.returncode == 1 and "rows written: 1 failed, 1 unsupported" in ran.stdout
    assert ran.stdout.partition("next: ")[2].split("\n")[0] == f"dlas show out {failed}"
    assert "--fastest" not in ran.stdout and "compare" not in ran.stdout
    again = dlas_here("run", "out", "--in-process")
    assert again.returncode == 1 and "kept from before: 2" in again.stdout
    other = dlas_here("run", "study.toml", "--out", "other", "--in-process", "--where", "compiler=*unsup*")
    assert other.returncode == 0 and "rows written: 1 unsupported" in other.stdout


def test_ahead_is_told_what_is_told_at_the_start(tmp_path: Path, dlas_here: Command) -> None:
    rules = [f'[[skip]]\n{rule}\nreason = "why"\n' for rule in ("batch = 8", 'model = "resnet1"')]
    axes = 'algorithm = ["direct", "gemm"]\ncompiler = "onnxruntime"\n'
    (tmp_path / "study.toml").write_text(SMALL + axes + "".join(rules))
    ahead = dlas_here("run", "study.toml", "--dry-run")
    assert ahead.returncode == 0 and ahead.stdout.startswith("1 point to run")
    assert "small: 1 point (4 in the cross product, 1 skipped, 2 merged)" in ahead.stdout
    assert "skip rule 2 matches no point" in " ".join(ahead.stderr.split())


@pytest.mark.usefixtures("same_threads_afterwards")
def test_a_share_of_a_study_is_measured_and_the_rest_predicted(tmp_path: Path, dlas_here: Command) -> None:
    (tmp_path / "study.toml").write_text(STUBS + "batch = [1, 2]\n")
    explored = dlas_here("explore", "study.toml", "--out", "out", "--share", "0.7", "--in-process")
    assert explored.returncode == 0, explored.stderr
    assert "more points; 0 of 5 are measured" in explored.stdout
    assert re.search(r"measured: 5 points of 6, [34] of them with a time", explored.stdout)
    assert "predicted: 1 point, with no intervals" in explored.stdout
    assert "written: out/predictions.jsonl\nnext: dlas table out\n" in explored.stdout
    assert " failed, 1 predicted" in dlas_here("table", "out").stdout
    assert '"status": "predicted"' in dlas_here("table", "out", "--json").stdout
    assert "5 of 6 points have their row" in dlas_here("status", "out").stdout
    assert "of its study" not in dlas_here("table", "out").stdout, "predicted points are among the lines"
    compared = dlas_here("compare", "out", "--axis", "batch").stdout
    assert "out has rows of 5 of the 6 points of its study; 1 predicted\n" in compared


@pytest.mark.slow
def test_points_are_chosen_as_rows_are(tmp_path: Path, dlas_here: Command) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    assert "1 point to run" in dlas_here("run", "small.toml", "--dry-run", "--where", "batch=8").stdout
    for where, said in (
        ("batch == 3", "matches nothing (there are batch: 1, 8)"),
        ("batch=3", "there are: 1, 8"),
        ("algoritm=x", "did you mean 'algorithm'"),
        ("model.width == 1", "unknown option in --where 'model.width'"),
        ("status == 'ok'", "have no status"),
    ):
        refused = dlas_here("run", "small.toml", "--out", "out", "--where", where)
        assert refused.returncode == 2 and said in refused.stderr
    both = ("--where", "batch=8", "--where", "batch == 1")
    assert "no point of the study matches all of" in dlas_here("run", "small.toml", "--dry-run", *both).stderr


def test_a_study_of_the_users_own_in_the_results_folder_stays(tmp_path: Path, dlas_here: Command) -> None:
    write(tmp_path / "own", [row()])
    (tmp_path / "own" / "study.toml").write_text(SMALL)
    (tmp_path / "other.toml").write_text(SMALL.replace("small", "other"))
    refused = dlas_here("run", "other.toml", "--out", "own")
    assert (
        refused.returncode == 2 and "'own/study.toml' is a study of your own, and another" in refused.stderr
    )
    (tmp_path / "own" / "study.toml").write_text(HEADING + Study.read(tmp_path / "other.toml").toml())
    assert dlas_here("run", "own", "--dry-run").stdout.startswith("2 points to run")
    assert Study.read(tmp_path / "own" / "study.toml") == Study.read(tmp_path / "other.toml")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "rows"], "no study.toml in 'rows'"),
        (["run", "nowhere"], "'nowhere'"),
        (["status", "nowhere"], "no results.jsonl in 'nowhere'"),
        (["run", "small.toml"], "--out"),
    ],
)
def test_a_folder_without_a_study_and_a_study_without_a_folder_are_refused(
    tmp_path: Path, dlas_here: Command, words: list[str], said: str
) -> None:
    write(tmp_path / "rows", [row()])
    (tmp_path / "small.toml").write_text(SMALL)
    refused = dlas_here(*words)
    assert refused.returncode == 2 and said in refused.stderr


def test_status_tells_what_it_can_of_a_folder_without_a_study_and_of_a_sweep_that_runs(
    tmp_path: Path, dlas_here: Command
) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    point, _ = Study.read(tmp_path / "small.toml").points()
    folder = write(tmp_path / "rows", [row(id=point.id), row(batch=3)])
    assert "2 ok" in dlas_here("status", "rows").stdout
    assert "what is left is unknown: no study.toml" in dlas_here("status", "rows").stdout
    (folder / "study.toml").write_text(SMALL)
    journal = Journal(folder / "results.jsonl")
    running = dlas_here("status", "rows").stdout
    journal.close()
    assert "small: 1 of 2 points has its row" in running and "1 row of points that are not" in running
    assert "a sweep is running" in running and "to go on" not in running


DRAWN = STUBS.replace(
    'model = ["tests.fixtures.stubs:StubModel"]',
    'model = [{ name = "tests.fixtures.stubs:StubModel", factor = "drawn" }]',
)


def test_a_sample_is_drawn_kept_gone_on_with_and_extended(tmp_path: Path, dlas_here: Command) -> None:
    (tmp_path / "study.toml").write_text(DRAWN)
    ahead = dlas_here("run", "study.toml", "--sample", "4", "--dry-run")
    assert ahead.returncode == 0 and "4 points to run" in ahead.stdout, ahead.stderr
    assert "1 point to run" in dlas_here("run", "study.toml", "--sample", "1", "--dry-run").stdout
    ran = dlas_here("run", "study.toml", "--sample", "2", "--out", "out", "--in-process")
    assert ran.returncode == 0, ran.stderr
    assert "s: 2 points of 2 draws of model" in ran.stdout.replace("\n", " ")
    assert "2 of 2 points have their row" in dlas_here("status", "out").stdout
    assert "0 points to run; 2 have their row" in dlas_here("run", "out", "--dry-run").stdout
    more = dlas_here("run", "out", "--sample", "4", "--in-process")
    assert "kept from before: 2" in more.stdout
    assert "--axis" not in more.stdout  # no two points differ in one drawn axis alone
    assert "4 of 4 points have their row" in dlas_here("status", "out").stdout


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        (DRAWN, [], 'factor = "drawn" needs a table [sample]'),
        (STUBS, ["--sample", "4"], "more points than there are"),
        (STUBS, ["--sample", "0"], "[sample] points = 0: the number of points to draw"),
        (DRAWN + "[sample]\npoints = -3", [], "[sample] points = -3"),
        (DRAWN + "[sample]\npoints = 3\naxes = ['models']", [], "unknown axis in [sample] axes 'models'"),
        (DRAWN.replace("factor", "seconds"), ["--sample", "2"], "cannot draw seconds = 'drawn'"),
    ],
)
def test_a_bad_sample_writes_nothing(
    tmp_path: Path, dlas_here: Command, text: str, words: list[str], said: str
) -> None:
    (tmp_path / "study.toml").write_text(text)
    refused = dlas_here("run", "study.toml", "--out", "out", *words)
    assert refused.returncode == 2 and said in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["study.toml"]
