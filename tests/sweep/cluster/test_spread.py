"""Steps that make artifacts on other machines: the same rows, and nothing is lost with such a machine."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlas.bench.processes.events import Task
from dlas.bench.processes.inline import Inline
from dlas.bench.processes.interface import Runner
from dlas.bench.store.cache import Cache
from dlas.errors import CorruptArtifact
from dlas.sweep.cluster.helper import Helper, Made
from dlas.sweep.cluster.parcels import pack, unpack
from dlas.sweep.cluster.spread import Elsewhere, Gone, SpreadRunner
from tests.fixtures.engine import rows, run, same, study_of

STUDY = study_of(
    'model = [{ name = "tests.fixtures.stubs:StubModel", factor = [1.0, 2.0] }]\n'
    'compiler = [{ name = "tests.fixtures.stubs:StubCompiler", number = [0, 1] }]'
)


class Beside(Elsewhere):
    """Another machine that is a folder; it works at once.

    Parameters
    ----------
    folder : Path
    trouble : callable, optional
        Changes what comes back, or raises.
    """

    name, slots = "beside", 1

    def __init__(self, folder: Path, trouble: Callable[[Made], Made] = lambda made: made) -> None:
        self.folder, self.trouble = folder, trouble
        self.begun: list[str] = []
        self._helper = Helper(folder / "beside", Inline)

    def begin(self, task: Task, memory: int, threads: int) -> object:
        self.begun.append(task.makes[0])
        own = Cache(self.folder / "cache")

        def fetch(kind: str, key: str) -> Any:
            return pack(own, kind, key)

        return self._helper.make(task, memory, threads, fetch)

    def ended(self, work: object) -> Made | None:
        assert isinstance(work, Made)
        return self.trouble(work)


def with_other(folder: Path, other: Elsewhere) -> Runner:
    return SpreadRunner(Inline(), Cache(folder / "cache"), [other])


def gone(made: Made) -> Made:
    raise Gone("its power is off")


def damaged(made: Made) -> Made:
    assert made.parcel is not None
    contents = {name: content + b"x" for name, content in made.parcel.contents.items()}
    return replace(made, parcel=replace(made.parcel, contents=contents))


def failed(made: Made) -> Made:
    return replace(made, parcel=None)


@pytest.mark.parametrize("trouble", [lambda made: made, gone, damaged, failed])
def test_rows_are_those_of_one_machine(tmp_path: Path, trouble: Callable[[Made], Made]) -> None:
    run(STUDY, tmp_path / "one", Inline)
    other = Beside(tmp_path / "two", trouble)
    run(STUDY, tmp_path / "two", functools.partial(with_other, tmp_path / "two", other), jobs=1)
    assert same(rows(tmp_path / "two")) == same(rows(tmp_path / "one"))
    assert other.begun, "it was asked"
    assert trouble is not gone or len(other.begun) == 1, "it is not asked again"


def test_a_machine_that_cannot_now_is_left_alone(tmp_path: Path) -> None:
    class Busy(Beside):
        def begin(self, task: Task, memory: int, threads: int) -> None:
            return None

    run(STUDY, tmp_path, functools.partial(with_other, tmp_path, Busy(tmp_path)), jobs=1)
    assert {row.status for row in rows(tmp_path)} == {"ok"}


def test_jobs_elsewhere_are_not_paused_nor_those_that_were_refused(tmp_path: Path) -> None:
    class Answers(Elsewhere):
        name, slots = "a machine", 1

        def __init__(self, work: object | None) -> None:
            self.work = work

        def begin(self, task: Task, memory: int, threads: int) -> object | None:
            return self.work

        def ended(self, work: object) -> None:
            return None

    task = Task("no:where", {}, 1.0, makes=("build", "key"))
    for work, away in ((object(), 1), (None, 0)):
        runner = SpreadRunner(Inline(), Cache(tmp_path / "cache"), [Answers(work)])
        job = runner.start([task], log=tmp_path / "log", memory=2**30)
        assert runner.elsewhere == away
        runner.pause(job)
        runner.resume(job)


def test_parcels_are_checked_when_they_arrive(tmp_path: Path) -> None:
    here, there = Cache(tmp_path / "here"), Cache(tmp_path / "there")
    with here.create("network", "key") as (folder, facts):
        (folder / "weights").write_bytes(b"1234")
        facts["operators"] = 3
    parcel = pack(here, "network", "key")
    assert parcel is not None and pack(here, "network", "other") is None
    for contents in ({"weights": b"1235"}, {"../weights": b"1234"}):
        digests = dict.fromkeys(contents, parcel.digests["weights"])
        with pytest.raises(CorruptArtifact, match="has changed on its way"):
            unpack(there, replace(parcel, contents=contents, digests=digests))
    assert there.get("network", "key") is None and not (tmp_path / "there" / "weights").exists()
    unpack(there, parcel)
    found = there.get("network", "key")
    assert found is not None and found.facts == {"operators": 3}
    found.verify()
