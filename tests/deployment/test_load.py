"""The simulated load: arrivals follow from the seed, and routing keeps up where one path does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import dlas
from benchmarks import load
from benchmarks.load import CHEAPEST, RATES, STATIC, Outcome, Site, always, arrivals, serve, servers
from dlas.deployment.routing import POLICIES, DeployedPaths, Route, Routes, State
from dlas.deployment.run import DeployedNetwork
from tests.fixtures.flexible import Recorded

BATCH, STATIC_S = 8, 8e-3
SECONDS = {"00": STATIC_S, "01": STATIC_S / 2, "10": 2 * STATIC_S, "11": STATIC_S / 4}
ACCURACY = {"00": 0.99, "01": 0.97, "10": 0.95, "11": 0.90}
KNOWN = {
    path: Route(path, ACCURACY[path], SECONDS[path], 0.98 * SECONDS[path], 1.02 * SECONDS[path])
    for path in SECONDS
}
ROUTES = [KNOWN[path] for path in ("11", "01", "00")]
SITE = Site(lambda path, count: SECONDS[path], lambda count: ROUTES, ACCURACY, "00", BATCH)
CAPACITY = BATCH / STATIC_S
DEADLINE = 4 * STATIC_S


def outcomes(trace: str) -> dict[str, Outcome]:
    times = arrivals(RATES[trace], CAPACITY, 10, seed=0)
    return {name: serve(times, SITE, policy, DEADLINE) for name, policy in servers(SITE).items()}


def test_arrivals_follow_from_the_seed_and_the_rates() -> None:
    times = arrivals([1, 3], 100, 20, seed=1)
    assert np.array_equal(times, arrivals([1, 3], 100, 20, seed=1))
    assert not np.array_equal(times, arrivals([1, 3], 100, 20, seed=2))
    assert (np.diff(times) >= 0).all() and times[0] >= 0 and times[-1] <= 20
    assert (times < 10).sum() == pytest.approx(1000, rel=0.15)
    assert (times >= 10).sum() == pytest.approx(3000, rel=0.15)


def test_in_bursts_of_twice_what_the_static_network_serves_routing_keeps_up() -> None:
    found = outcomes("bursts")
    assert found[STATIC].late > 0.3 and found[STATIC].accuracy == pytest.approx(0.99)
    assert found[CHEAPEST].late == 0 and found[CHEAPEST].accuracy == pytest.approx(0.90)
    assert found["load"].late < 0.01
    assert found[CHEAPEST].accuracy < found["load"].accuracy < found[STATIC].accuracy
    assert found["load"].paths > 1


def test_with_little_to_do_routing_takes_the_static_networks_path() -> None:
    times = np.arange(0, 1, 10 * STATIC_S)
    outcome = serve(times, SITE, POLICIES["load"], DEADLINE)
    assert outcome == serve(times, SITE, always("00"), DEADLINE)
    assert (outcome.late, outcome.paths) == (0, 1) and outcome.accuracy == pytest.approx(0.99)


# ---------------------------------------------------------------- on a deployed network


def deployed(paths: str = "00 01 10 11") -> tuple[DeployedPaths, Recorded]:
    """Return a network whose legacy path is not in the Pareto set, since 01 is as accurate and faster."""
    program = Recorded()
    functions = {size: {path: f"{path}_{size}" for path in paths.split()} for size in (1, BATCH, 16)}
    best = [KNOWN["11"], Route("01", 0.99, *list(vars(KNOWN["01"]).values())[2:])]
    others = {size: [KNOWN["00"], KNOWN["10"]] for size in (1, BATCH)}
    routes = Routes(functions, {1: best[1:], BATCH: best, 16: []}, {}, others)
    return DeployedPaths({"input": [4, 3, 8, 8], "labels": ["0"]}, program, routes), program  # type: ignore[arg-type]


def test_the_static_network_is_the_legacy_path_also_where_another_is_better() -> None:
    network, program = deployed()
    site = Site.of(network, BATCH)
    assert (site.legacy, site.accuracy["00"], site.accuracy["01"]) == ("00", 0.99, 0.99)
    assert servers(site)[STATIC](ROUTES, State(BATCH)) == "00"
    assert [route.path for route in site.routes(1)] == ["01"], "a single image is run by the smallest program"
    assert [route.path for route in site.routes(3)] == ["11", "01"]
    site.run("10", 1)
    site.run("00", 5)
    assert program.ran == ["10_1", f"00_{BATCH}"]


def run(monkeypatch: pytest.MonkeyPatch, network: DeployedNetwork, *words: str) -> tuple[int, str]:
    """Run the benchmark on a network as if it had been loaded from a folder."""
    monkeypatch.setattr(dlas, "load", lambda folder: network)
    app = typer.Typer()
    app.command()(load.main)
    done = CliRunner().invoke(app, ["served", *words], env={"COLUMNS": "200"})
    return done.exit_code, " ".join(done.output.split())


def test_every_server_of_every_trace_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    code, printed = run(monkeypatch, deployed()[0], "--batch", str(BATCH), "--seconds", "0.01")
    assert code == 0, printed
    for word in (*RATES, STATIC, CHEAPEST, "latency", "load", "accuracy within 1%"):
        assert word in printed
    assert "batch 8, 2 paths" in printed and "99.00%" in printed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--traces", "steady,calm"], "trace 'calm'; there are: steady, bursts, doubling"),
        (["--batch", "5"], "batch 5; with measured paths there are: 1, 8"),
        (["--batch", "16"], "batch 16; with measured paths there are: 1, 8"),
        (["--batch", "-1"], "batch -1; with measured paths there are: 1, 8"),
        (["--seconds", "0"], "greater than or equal to 0.01"),
        (["--deadline", "-2"], "greater than or equal to 0.1"),
        (["--seed", "-1"], "greater than or equal to 0"),
    ],
)
def test_values_that_a_load_does_not_have_are_refused(
    monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    code, printed = run(monkeypatch, deployed()[0], *words)
    printed = printed.replace("│ ", "")
    assert code == 2 and said in printed, printed


def test_a_folder_without_paths_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, printed = run(monkeypatch, deployed("01 11")[0], "--batch", str(BATCH))
    assert code == 2 and "path '00', the static network, is not among 01, 11" in printed
    one = DeployedNetwork({"input": [1, 3, 8, 8], "labels": ["0"]}, Recorded())  # type: ignore[arg-type]
    code, printed = run(monkeypatch, one)
    assert code == 2 and "'served' holds one network" in printed
    monkeypatch.undo()
    with pytest.raises(typer.BadParameter, match="no SHA256SUMS in"):
        load.opened(tmp_path)
