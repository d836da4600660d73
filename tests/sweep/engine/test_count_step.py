"""Instructions counted beside clocks, from a sweep of real kernels to the comparison of two runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dlas
from dlas.analysis.against.changes import MORE, changes_between
from dlas.bench.measuring import callgrind
from dlas.stack import MeasureSettings
from dlas.sweep.engine.planning import Plan, Planner
from dlas.sweep.rows.results import read_rows
from dlas.sweep.study.study import Study
from tests.fixtures.commands import runner
from tests.fixtures.rows import write

OWN = """
from dataclasses import dataclass

from tvm import te

from dlas.schedules.gemm import Gemm

MORE = 0


@dataclass(frozen=True)
class Own(Gemm):
    def compute(self, x, packed, conv, tail):
        if MORE and (conv.c, conv.h, conv.k) == (8, 32, 48):
            image = x
            x = te.compute(image.shape, lambda *at: image(*at) * 1.5 - image(*at) * 0.5, name="seen")
        return super().compute(x, packed, conv, tail)
"""
"""An algorithm whose kernels of some layers pass over their input once more where ``MORE`` is set."""
STUDY: dict[str, Any] = {
    "name": "counted",
    "axes": {
        "dataset": {"name": "random", "size": 32, "images": 4, "classes": 10},
        "model": {"name": "cifar_mobilenet_v2", "width": 0.25, "recipe": "none"},
        "algorithm": "own:Own",
        "compiler": "untuned",
        "hardware": {"name": "local_cpu", "threads": 1},
    },
    "measure": {"repeats": 5, "seconds": 0.2, "layer_repeats": 0, "callgrind": True},
}


def plans(folder: Path, **settings: Any) -> dict[str, Plan]:
    """Return the plan of each compiler's point."""
    axes = {**STUDY["axes"], "algorithm": "direct", "compiler": ["untuned", "onnxruntime"]}
    study = Study.of({**STUDY, "axes": axes, "measure": settings})
    planner = Planner(study.measure, folder)
    return {str(point.compiler): planner.plan(point) for point in study.points()}


def test_only_programs_of_our_own_are_counted_and_only_on_demand(tmp_path: Path) -> None:
    counted, plain = plans(tmp_path, callgrind=True), plans(tmp_path)
    steps = {name: [step.name for step in plan.steps] for name, plan in counted.items()}
    assert steps["untuned"][-2:] == ["check", "count"] and "count" not in steps["onnxruntime"]
    assert all("count" not in [step.name for step in plan.steps] for plan in plain.values())
    count = counted["untuned"].steps[-1]
    assert (count.time_limit, count.alone, count.kind) == ("build", False, None)
    for name, plan in counted.items():
        assert plan.artifacts() == plain[name].artifacts(), "the same builds"
    assert counted["untuned"].key != plain["untuned"].key


def test_studies_that_do_not_count_have_the_settings_of_before(tmp_path: Path) -> None:
    settings = plans(tmp_path)["untuned"].measure.arguments["settings"]
    assert "callgrind" not in settings
    assert MeasureSettings(**settings) == replace(MeasureSettings(), callgrind=False)


@pytest.mark.ci
@pytest.mark.timeout(900)
@pytest.mark.skipif(callgrind.missing() is not None, reason="valgrind is not installed")
def test_one_run_finds_a_kernel_with_two_percent_more_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    for run, more in (("before", 0), ("now", 1)):
        (tmp_path / "own.py").write_text(OWN.replace("MORE = 0", f"MORE = {more}"))
        dlas.run(STUDY, tmp_path / run, cache=tmp_path / "cache", progress="silent")
    before, now = (next(iter(read_rows(tmp_path / run))) for run in ("before", "now"))
    if "unhandled instruction" in (before.count_note or ""):
        pytest.skip(f"this valgrind knows not all instructions of this processor: {before.count_note}")
    assert before.counter == now.counter and before.instructions and now.instructions
    assert sum(now.kernel_instructions.values()) == now.instructions
    # The same times, so that the counts decide: the machine may have changed its speed.
    write(tmp_path / "now", [replace(now, latency_s=before.latency_s, sentinel_s=before.sentinel_s)])
    changes = changes_between(tmp_path / "now", tmp_path / "before")
    (change,) = changes.points
    grown = {name: more / before.kernel_instructions[name] for name, more in change.kernels}
    found = {name for name, share in grown.items() if share > 0.005}
    assert found == {"conv_4_body_0", "conv_5_body_0", "conv_6_body_0"}
    assert [grown[name] for name in found] == pytest.approx([0.02] * 3, abs=0.005)
    assert max(abs(share) for name, share in grown.items() if name not in found) < 0.004, "counts repeat"
    assert change.outcome == MORE
    told = runner(tmp_path, monkeypatch, capsys)("compare", "now", "--against", "before", "--json")
    assert told.returncode == 0 and '"more instructions"' in told.stdout
