"""A predictor for a device, from nothing: on a made-up one, and refusals; slowly, on this machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dlas
from dlas.errors import InputError, Unfinished
from dlas.face.tables.device import never_seen_in_short, of_networks_never_seen
from dlas.face.tables.view import View
from dlas.prediction.adaptive.device import strategy
from dlas.prediction.adaptive.device.budget import FIRST
from dlas.prediction.adaptive.device.record import AGAIN, MORE_THREADS, ROWS, UNSEEN, DeviceRequest, opened
from dlas.prediction.adaptive.device.strategy import DeviceStrategy
from dlas.prediction.adaptive.device.studies import DeviceStudies, drawn_study, unseen_study
from dlas.prediction.adaptive.loop import Loop, LoopBudget
from dlas.prediction.learning import stored
from dlas.prediction.predictors.boosted_kernels import BoostedKernels
from tests.fixtures.commands import Command
from tests.fixtures.made_up_device import THREADS, UNTOLD, MadeUpSession, MadeUpStudies
from tests.fixtures.rows import failing, write

ASKED = DeviceRequest.checked(
    hardware="local_cpu",
    compiler="onnxruntime",
    threads=1,
    algorithm=None,
    model="random_layers",
    target="latency_s",
    unseen=["resnet18", "vgg16"],
    seed=0,
)


@dataclass
class Made:
    """What became of commands in one folder."""

    folder: Path
    asked: DeviceRequest = ASKED
    sessions: list[MadeUpSession] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def command(self, minutes: float, most: int | None = None, **options: Any) -> View:
        """Do what ``dlas fit-device`` does, on a made-up device."""
        run = opened(self.folder, self.asked)
        session = MadeUpSession.made(**options)
        self.sessions.append(session)
        budget = LoopBudget(minutes=minutes, before_s=run.spent_s, now=lambda: session.now_s)
        made = DeviceStrategy(self.folder, self.asked, MadeUpStudies(most), session, budget, self.said.append)
        Loop(made, session, self.folder, budget, self.said.append).run()
        return of_networks_never_seen(made)

    def ids(self, place: str) -> list[str]:
        """Return the ids of what was measured for a folder, by all commands."""
        return [name for session in self.sessions for where, name in session.measured if where == place]

    @property
    def spent_s(self) -> float:
        """The seconds of all commands."""
        return sum(session.now_s for session in self.sessions)


@pytest.fixture(scope="module", autouse=True)
def fewer_trees() -> Iterator[None]:
    """Fit each predictor in a fraction of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strategy, "HELD_OUT", 4)
        patch.setattr(strategy, "MEMBER", BoostedKernels(rounds=10))
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A command that was interrupted in a round, and gone on with; a drawn point in twenty fails."""
    found = Made(tmp_path_factory.mktemp("device") / "mine")
    unseen = MadeUpStudies().unseen()
    options: dict[str, Any] = {"fails": lambda point: int(point.id, 16) % 20 == 0 and point not in unseen}
    with pytest.raises(KeyboardInterrupt):
        found.command(6, interrupted=FIRST + 15, **options)
    (found.folder / "notes.txt").write_text("the user's own")
    view = found.command(6, **options)
    found.said.append(str(view))
    return found


def test_networks_never_seen_are_predicted_and_then_measured(made: Made) -> None:
    shown = made.said[-1]
    assert "latency of networks that it never saw" in shown
    errors = [float(text) for text in re.findall(r"([+-]\d+\.\d)%", shown)]
    assert len(errors) == 4 and max(map(abs, errors)) < 25
    assert re.search(r"mean error [\d.]+% of 4 points; \d+% within their 90% interval; noise floor \d", shown)
    assert not set(made.ids(ROWS)) & set(made.ids(UNSEEN))


def test_the_folder_holds_a_predictor_beside_its_rows(made: Made) -> None:
    assert {path.name for path in made.folder.iterdir()} == {
        *("predictor.json", "SHA256SUMS", "0", "device.json", ROWS, AGAIN, UNSEEN, "notes.txt")
    }
    measured = dlas.read(made.folder / UNSEEN)["latency_s"].to_numpy()
    found = dlas.predict(made.folder, made.folder / UNSEEN).frame
    assert (found["latency_s"].to_numpy() / measured - 1).max() < 0.25
    assert found["latency_low_s"].notna().all()


def test_the_networks_never_seen_say_how_wide_intervals_are(made: Made) -> None:
    (setting,) = stored.read(made.folder).record.settings
    assert setting.tried_after == 2 and setting.spread is not None
    told = [line for line in made.said if "intervals" in line and "2 networks never seen were off" in line]
    assert len(told) == 1, "once, also where the same command goes on"


def test_its_card_tells_of_the_networks_never_seen(made: Made, dlas_here: Command) -> None:
    shown = dlas_here("show", str(made.folder)).stdout
    assert re.search(r"never seen +mean error [\d.]+% of 4 points; \d+% within", shown)
    for text in ("by kernel", "by size", "noise floor", "do not trust"):
        assert text in shown
    assert len(shown.splitlines()) < 30


def test_its_card_says_where_no_network_never_seen_has_a_time(made: Made, tmp_path: Path) -> None:
    write(tmp_path / UNSEEN, [failing()])
    told = never_seen_in_short(tmp_path, stored.read(made.folder))
    assert told is not None and "no row can be used" in told
    assert never_seen_in_short(tmp_path / "elsewhere", stored.read(made.folder)) is None


def test_what_was_measured_before_an_interruption_is_not_measured_again(made: Made) -> None:
    ids = made.ids(ROWS)
    assert len(ids) == len(set(ids)) == len(dlas.read(made.folder / ROWS))
    assert any("interrupted; the same command goes on: " in line for line in made.said)
    assert set(made.ids(AGAIN)) <= set(ids)
    assert len(made.ids(AGAIN)) == len(set(made.ids(AGAIN))) >= 4


def test_the_minutes_are_spent_on_points_and_kept(made: Made) -> None:
    assert made.spent_s <= 6 * 60
    assert len(made.ids(ROWS)) > FIRST + 25
    rounds = [line for line in made.said if line.startswith("round ")]
    assert len(rounds) >= 3 and all("off on the first 28 networks" in line for line in rounds)
    assert rounds[-1].endswith("; no more points: the rest is for the end")
    assert any("candidates, on which predictors disagree most" in line for line in made.said)


def test_points_that_fail_are_left_out_and_counted(made: Made) -> None:
    rows = dlas.read(made.folder / ROWS)
    failed = int(rows["status"].eq("failed").sum())
    assert failed > 0
    assert any(f"(left out: {failed} not ok)" in line for line in made.said)
    assert any(f"fitting boosted_kernels to {len(rows) - failed} points" in line for line in made.said)


def test_a_finished_folder_says_so_and_other_options_are_refused(made: Made, tmp_path: Path) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in made.folder.rglob("*"))
    with pytest.raises(InputError, match="is finished: `dlas predict"):
        made.command(60)
    assert sorted((path, path.stat().st_mtime_ns) for path in made.folder.rglob("*")) == before
    started = Made(tmp_path / "mine")
    with pytest.raises(KeyboardInterrupt):
        started.command(6, interrupted=2)
    with pytest.raises(InputError, match=r"`compiler=onnxruntime`, and this one has `compiler=torch_eager`"):
        opened(started.folder, ASKED.model_copy(update={"compiler": "torch_eager"}))


@pytest.mark.ci
def test_a_quarter_of_the_points_tells_of_more_threads(tmp_path: Path) -> None:
    made = Made(tmp_path / "mine", ASKED.model_copy(update={"more_threads": THREADS}))
    with pytest.raises(KeyboardInterrupt):
        made.command(6, interrupted=60)
    made.command(6)
    assert made.spent_s <= 6 * 60
    again = made.ids(MORE_THREADS)
    assert len(again) == len(set(again)) == FIRST, "those of the interrupted command count"
    usual, more = stored.read(made.folder).record.settings
    assert (usual.setting["threads"], more.setting["threads"]) == ("1", str(THREADS))
    assert (usual.on_fewer_threads, more.on_fewer_threads) == (0, len(usual.rows))
    assert usual.tried_after == 2 and not more.tried_after
    assert more.evaluation[0].overall.mape < 0.15
    told = [line for line in made.said if "off on networks held out" in line]
    assert ["1 thread" in told[-2], "2 threads" in told[-1]] == [True, True]


def test_a_slow_device_stops_early_with_the_minutes_that_go_on(tmp_path: Path) -> None:
    slow = Made(tmp_path / "mine")
    with pytest.raises(Unfinished, match="a point takes 40 s here") as told:
        slow.command(6, pace=10.0)
    assert len(slow.ids(ROWS)) < FIRST and not (slow.folder / "predictor.json").exists()
    minutes = int(str(told.value).partition("with `minutes=")[2].partition("`")[0])
    with pytest.raises(Unfinished):
        slow.command(6, pace=10.0)
    assert not slow.sessions[-1].measured, "what is known already is not found out again"
    with pytest.raises(KeyboardInterrupt):
        slow.command(minutes, pace=10.0, interrupted=10)
    assert len(slow.ids(ROWS)) == len(set(slow.ids(ROWS))) == 15


def test_where_every_point_fails_the_reason_is_told(tmp_path: Path) -> None:
    broken = Made(tmp_path / "mine")
    with pytest.raises(Unfinished, match=rf"{FIRST} rows: {FIRST} not ok: it is made to fail"):
        broken.command(6, fails=lambda point: True)


def test_it_finishes_with_what_there_is_where_no_more_can_be_drawn(tmp_path: Path) -> None:
    few = Made(tmp_path / "mine")
    unseen = MadeUpStudies().unseen()
    view = few.command(600, most=FIRST + 6, untold=lambda point: point in unseen)
    assert len(few.ids(ROWS)) == FIRST + 6 and "no more points: no others can be drawn" in few.said
    assert f"missing: 4 points: {UNTOLD}" in str(view) and view.frame.empty
    assert dlas.predictor(few.folder).predict(few.folder / ROWS)["latency_s"].gt(0).all()


def test_rounds_end_where_nobody_can_tell_a_candidate(tmp_path: Path) -> None:
    session = MadeUpSession.made(untold=lambda point: True)
    said: list[str] = []
    budget = LoopBudget(minutes=60, now=lambda: session.now_s)
    made = DeviceStrategy(tmp_path / "mine", ASKED, MadeUpStudies(), session, budget, said.append)
    for batch in made.rounds():
        made.tell(session.measure(batch.study, batch.points, tmp_path / "mine" / batch.place), batch.place)
    assert len(made.tried) == FIRST
    assert said[-1] == f"no more points: the kernels of 24 points cannot be told (24 points: {UNTOLD})"


def test_too_few_points_to_draw_are_told_with_what_became_of_them(tmp_path: Path) -> None:
    few = Made(tmp_path / "mine")
    with pytest.raises(
        Unfinished, match=rf"0 points of 9 can be used, no others.*{FIRST} or more: it is made"
    ):
        few.command(60, most=9, fails=lambda point: True)


def test_as_many_networks_are_drawn_as_there_are() -> None:
    noise = {"name": "random", "size": [32, 64, 96], "images": 2}
    axes = {"dataset": noise, "compiler": "onnxruntime", "batch": [1, 2]}
    study = dlas.Study(axes=axes, sample={"points": 2, "axes": ["dataset", "batch"]})
    studies = DeviceStudies(study, study)
    few, every, again = studies.draws(2), studies.draws(100), studies.draws(5)
    assert len(set(every)) == len(every) == 6
    assert every[:2] == few and every[:5] == again
    assert studies.drawn.sample and studies.drawn.sample.points == 5, "what is run can be drawn"


def test_networks_are_drawn_so_that_more_begin_with_the_same() -> None:
    study = drawn_study(ASKED)
    few, more = ([point.id for point in study.with_sample(count).points()] for count in (3, 5))
    assert more[:3] == few and len(set(more)) == 5
    values = {str(point.compiler) for point in study.points()}, {point.batch for point in study.points()}
    assert values == ({"onnxruntime"}, {1, 2, 4, 8})
    unseen = list(unseen_study(ASKED).points())
    assert [(point.model.name, point.batch) for point in unseen] == [
        *(("resnet18", 1), ("resnet18", 8), ("vgg16", 1), ("vgg16", 8))
    ]


def test_networks_never_seen_have_the_images_that_they_are_for() -> None:
    unseen: list[Any] = ["resnet18", "inception_v3", {"name": "cifar_resnet18", "width": 0.25}]
    points = list(unseen_study(ASKED.model_copy(update={"unseen": unseen})).points())
    images: list[tuple[str, Any]] = [(point.model.name, point.dataset_part) for point in points]
    assert sorted((name, each.size, each.classes) for name, each in images) == [
        *[("cifar_resnet18", 32, 10)] * 2,
        *[("inception_v3", 299, 1000)] * 2,
        *[("resnet18", 224, 1000)] * 2,
    ]


def test_parts_have_options_and_threads_go_where_they_are_taken() -> None:
    table = {"name": "local_cpu", "threads": 2}
    given = ASKED.model_copy(update={"hardware": table, "threads": None, "model": {"name": "random_layers"}})
    assert {str(point.hardware) for point in drawn_study(given).points()} == {"local_cpu(threads=2)"}
    usual = ASKED.model_copy(update={"threads": None})
    assert {str(point.hardware) for point in drawn_study(usual).points()} == {"local_cpu(threads=1)"}
    gpu = ASKED.model_copy(update={"hardware": "local_cuda", "threads": None})
    assert {str(point.hardware) for point in unseen_study(gpu).points()} == {"local_cuda"}


def test_a_compiler_that_takes_algorithms_has_blocked_spatial_pack() -> None:
    study = unseen_study(ASKED.model_copy(update={"compiler": "hand"}))
    assert {str(point.algorithm) for point in study.points()} == {"spatial_pack(layout=blocked)"}
    other = unseen_study(ASKED.model_copy(update={"compiler": "hand", "algorithm": "gemm"}))
    assert {str(point.algorithm) for point in other.points()} == {"gemm"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--minutes", "1"], "take about 6 minutes with onnxruntime"),
        (["--minutes", "10", "--compiler", "hand"], "minutes with hand"),
        (["--compiler", "torch_compile"], "these tell: hand, metaschedule, onnxruntime, torch_eager"),
        (["--compiler", "onnxrutime"], "did you mean 'onnxruntime'"),
        (["--hardware", "local_cpi"], "did you mean 'local_cpu'"),
        (["--hardware", "jetson_agx"], "jetson_agx: "),
        (["--threads", "4096"], "threads = 4096, but this process may use"),
        (
            ["--model", "resnet18"],
            "--model 'resnet18' draws no networks; these parts do: ofa_mobilenet_v3, random_layers",
        ),
        (["--algorithm", "gemm"], "--algorithm 'gemm': onnxruntime has kernels of its own"),
        (["--unseen", "resnet19"], "unknown model 'resnet19'"),
        (["--target", "energy_j"], "--target 'energy_j'"),
        (["--minutes", "inf"], "--minutes inf: expected a number above 0"),
        (["--minutes", "nan"], "--minutes nan: expected a number above 0"),
        (
            ["--hardware", "local_cuda", "--threads", "4"],
            "--threads 4: local_cuda takes no number of threads",
        ),
        (
            ["--hardware", "{name = 'local_cpu', threads = 2}", "--threads", "1"],
            "--hardware says threads = 2",
        ),
        (["--hardware", "{name = 'local_cpu', threads = [1, 2]}"], "option threads = [1, 2]"),
        (["--more-threads", "1"], "--more-threads 1"),
        (
            ["--threads", "2", "--more-threads", "2"],
            "--more-threads 2: expected more than the 2 of all points",
        ),
        (
            ["--hardware", "local_cuda", "--more-threads", "2"],
            "--more-threads 2: local_cuda takes no number of threads",
        ),
        (
            ["--unseen", "{width = 2}"],
            "--unseen {'width': 2}: expected a part's name, or a table with a name",
        ),
    ],
)
def test_bad_input_is_one_message_exit_code_2_and_nothing_written(
    words: list[str], said: str, dlas_here: Command, tmp_path: Path
) -> None:
    refused = dlas_here("fit-device", "mine", *words)
    assert refused.returncode == 2, refused.stderr
    assert said in " ".join(refused.stderr.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_predictor_is_made_for_this_machine(dlas_here: Command, tmp_path: Path) -> None:
    words = ["fit-device", "mine", "--unseen", "squeezenet1_0"]
    done = dlas_here(*words, "--minutes", "3")
    while more := re.search(r"--minutes (\d+) goes on", " ".join(done.stderr.split())):  # on a slow machine
        assert done.returncode == 1
        done = dlas_here(*words, "--minutes", more[1])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "doctor: " in done.stdout and "squeezenet1_0" in done.stdout and "fitted: mine" in done.stdout
    rows = pd.concat([dlas.read(tmp_path / "mine" / name) for name in (ROWS, UNSEEN)])
    assert rows["status"].eq("ok").mean() > 0.9
    found = dlas.predict(tmp_path / "mine", tmp_path / "mine" / UNSEEN).frame
    assert len(found) == 2 and found["latency_s"].gt(0).all()
    assert dlas_here(*words).returncode == 2
