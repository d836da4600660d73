"""A study's paths deployed as one program, and served."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dlas
from benchmarks.load import RATES, Site, arrivals, serve, servers
from dlas.deployment.routing import ROUTES, DeployedPaths
from dlas.deployment.run import check_files
from dlas.sweep.rows.results import read_rows
from tests.fixtures import commands
from tests.fixtures.deployed import hash_again, run
from tests.fixtures.flexible import PATHS

STUDY = """
name = "flexible"
[axes]
dataset = ["tests.fixtures.tiny:TinyDataset"]
model = [{ name = "dlas.testing.networks:StagedModel", epochs = 1 }]
compression = [{ name = "leaf", path = ["00", "01", "10", "11"], epochs = 1 }]
compiler = ["untuned"]
hardware = [{ name = "local_cpu", threads = 1 }]
batch = [1, 4]
[measure]
repeats = 5
seconds = 0.5
"""


@pytest.mark.slow
def test_the_paths_of_a_study_are_deployed_and_served(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    ran = commands.dlas(tmp_path, "run", "study.toml", "--out", "out")
    assert ran.returncode == 0, ran.stderr
    rows = list(read_rows(tmp_path / "out"))
    assert {(row.compression["path"], row.batch) for row in rows} == {(p, b) for p in PATHS for b in (1, 4)}
    assert all(row.status == "ok" for row in rows)
    done = commands.dlas(tmp_path, "deploy", "out", "--paths", "--to", "served")
    assert done.returncode == 0, done.stderr
    assert "note" not in done.stdout, "it is the code that was measured"
    home = tmp_path / "served"
    check_files(home)
    network = dlas.load(home)
    assert isinstance(network, DeployedPaths) and network.paths == PATHS and network.shape == (4, 3, 8, 8)
    expected = np.load(home / "example_outputs.npy")
    images = np.load(home / "example.npy")
    np.testing.assert_allclose(network(images), expected, rtol=0, atol=1e-4 * np.abs(expected).max())
    assert np.array_equal(network.run(images), network(images))
    assert not np.array_equal(network.run(images, path="11"), network(images))
    stable = {row.compression["path"] for row in rows if row.batch == 4 and row.timed}
    for policy in ("latency", "accuracy", "load") if stable else ():
        assert network.choose(policy, 4, queue=4, deadline_s=1.0) in stable
    told = json.loads((home / ROUTES).read_text())
    assert [entry["batch"] for entry in told["batches"]] == [1, 4]
    measured = {row.compression["path"]: row.accuracy for row in rows if row.batch == 4}
    largest = told["batches"][1]
    assert {route["path"] for name in ("pareto", "others") for route in largest[name]} == stable
    for route in (*largest["pareto"], *largest["others"]):
        assert route["accuracy"] == measured[route["path"]]
        assert route["latency_low_s"] <= route["latency_s"] <= route["latency_high_s"]
    if "00" in stable:
        site = Site.of(network, 4)
        times = arrivals(RATES["bursts"], 400, 1, seed=0)
        known = sorted(row.accuracy for row in rows if row.accuracy is not None)
        for server in servers(site).values():
            outcome = serve(times, site, server, deadline_s=1)
            assert known[0] - 1e-9 <= outcome.accuracy <= known[-1] + 1e-9
            assert outcome.rate > 0 and 1 <= outcome.paths <= len(PATHS)
    checked = run(home)
    assert checked.returncode == 0 and "right on 4 images" in checked.stdout
    assert "policy=" in (home / "README.md").read_text()
    content = (home / "library.so").read_bytes()
    (home / "library.so").unlink()  # it is loaded, and written over it would crash the process
    (home / "library.so").write_bytes(content + b"more")
    hash_again(home)
    with pytest.raises(ValueError, match="is of another library"):
        dlas.load(home)
