"""The studies that are shipped: they expand to what their READMEs say, and the paper's run on small files."""

from __future__ import annotations

import lzma
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from safetensors.torch import save_file

from dlas.analysis.observations import OPEN, Evidence, observe
from dlas.analysis.roles import with_roles
from dlas.stack import Workspace
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.results import COMPLETED, Row, read_rows
from dlas.sweep.study import parts
from dlas.sweep.study.study import Study
from tests.fixtures import rows as made_rows
from tests.fixtures.package import ROOT

EXPERIMENTS = ROOT / "experiments"
STUDIES = sorted(EXPERIMENTS.glob("*/*.toml"))
READMES = sorted(EXPERIMENTS.glob("*/README.md"))
PAPER = {"dlas-cifar10": 4 * 5, "dlas-imagenet": 4 * 5}
"""Networks of Tables 2 and 5, with their compressions."""
FIGURES = {
    "dlas-cifar10/study": 4 * 5,
    "dlas-imagenet/study": 4 * 5,
    "dlas-imagenet/x86": 3 * 5,
    "dlas-imagenet/x86-densenet161": 4,  # the paper could not run it in int8
    "dlas-fashion/latency": 4 * 5,
}
"""Studies that have the cells of Figure 4 or 6 on one processor."""
CURVES = {
    "dlas-cifar10/accuracy": {"knee"},
    "dlas-imagenet/accuracy": {"knee"},
    "dlas-fashion/study": {"knee", "tolerance"},
}
"""Studies that have all levels of both prunings, and by what they choose the elbow."""


def points(path: Path) -> list[Any]:
    return list(Study.read(path).points())


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_study_expands(path: Path) -> None:
    study = Study.read(path)
    study.check_size()
    expansion = study.expansion()
    every = list(study.points(expansion))
    assert every
    for model in {point.model for point in every}:
        if "weights" not in dict(model.options):
            model.verify("model")
    assert len(expansion.skipped) == len(study.skip), "a rule that skips nothing"
    assert study.name == path.parent.name + ("" if path.stem == "study" else f"-{path.stem}")


@pytest.mark.parametrize("path", READMES, ids=lambda path: path.parent.name)
def test_every_readme_tells_the_number_of_rows_and_the_command(path: Path) -> None:
    text = path.read_text()
    found = re.search(r"\*\*Rows\.\*\* ([\d,]+)", text)
    assert found and int(found[1].replace(",", "")) == len(points(path.parent / "study.toml"))
    for study in path.parent.glob("*.toml"):
        assert f"experiments/{path.parent.name}/{study.name}" in text or path.parent.name == "quickstart"


@pytest.mark.parametrize("path", READMES, ids=lambda path: path.parent.name)
def test_every_readme_tells_how_many_rows_are_kept_beside_it(path: Path) -> None:
    text = re.sub(r"<!--.*?-->", "", path.read_text())
    (told,) = re.findall(r"^\*\*Kept\.\*\* (.+?)(?:\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    kept: Counter[str] = Counter()
    for file in path.parent.rglob("results.jsonl.xz"):
        with lzma.open(file) as rows:
            kept[file.relative_to(path.parent).parts[0]] += sum(1 for row in rows if row.strip())
    assert told.startswith("No rows") == (not kept)
    counts = re.findall(r"\[`([^`]+)/`\]\(\1\): ([\d,]+) rows", told)
    assert {name: int(count.replace(",", "")) for name, count in counts} == kept


def test_the_numbers_of_rows_of_other_studies_are_right() -> None:
    every = (line for path in READMES for line in path.read_text().splitlines())
    lines = [line for line in every if line.startswith("| `experiments/")]
    assert lines
    for line in lines:
        study, *_, rows = (cell.strip(" `") for cell in line.strip("|").split("|"))
        count = int(re.sub(r" a seed$|,", "", rows))
        assert count == len(points(ROOT / study)), line


def test_every_study_is_listed() -> None:
    listed = (EXPERIMENTS / "README.md").read_text()
    assert all(f"]({path.parent.name})" in listed for path in STUDIES)


@pytest.mark.parametrize("name", sorted(PAPER))
def test_the_papers_networks_and_levels(name: str) -> None:
    found = {(point.model, point.compression) for point in points(EXPERIMENTS / name / "study.toml")}
    assert len(found) == PAPER[name]
    large = {"cifar_resnet18", "cifar_vgg16", "densenet161", "resnet50"}
    for model, compression in found:
        level = dict(compression.options).get("level")
        if compression.name == "channel_pruning":
            assert level == (0.8 if model.name in large else 0.5)
        if compression.name == "weight_pruning":
            assert level == (0.95 if model.name in large or name == "dlas-cifar10" else 0.8)


DENSE = {"direct", "gemm", "spatial_pack"}
SPARSE = {f"csr_{name}" for name in DENSE}


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_one_processor_has_the_cells_of_the_papers_figure(name: str) -> None:
    cells: dict[Any, dict[str, set[str]]] = {}
    for point in points(EXPERIMENTS / f"{name}.toml"):
        if point.hardware.name == "local_cpu":
            compilers = cells.setdefault((point.model, point.compression), {})
            compilers.setdefault(point.compiler.name, set()).add(point.algorithm.name)
    assert len(cells) == FIGURES[name]
    for (_, compression), compilers in cells.items():
        pruned = compression.name.endswith("_pruning")
        assert compilers["metaschedule"] == (SPARSE if pruned else DENSE)
        assert compilers["untuned"] == ({*SPARSE, "direct"} if pruned else DENSE)


@pytest.mark.parametrize("name", sorted(CURVES))
def test_a_curve_has_every_level_of_the_grid(name: str) -> None:
    found = {point.compression for point in points(EXPERIMENTS / f"{name}.toml")}
    for technique in ("weight_pruning", "channel_pruning"):
        levels = [dict(choice.options)["level"] for choice in found if choice.name == technique]
        grid = parts.find("compression", technique).cls.GRID
        assert sorted(set(levels) - {"elbow"}) == list(grid) and "elbow" in levels
    elbows = [dict(choice.options) for choice in found if dict(choice.options).get("level") == "elbow"]
    assert {options.get("elbow", "tolerance") for options in elbows} == CURVES[name]


def test_shares_by_layer_are_measured_for_the_networks_and_levels_that_are_timed() -> None:
    def pruned(name: str) -> set[tuple[str, str, float]]:
        found = {(each.model.name, each.compression) for each in points(EXPERIMENTS / "dlas-imagenet" / name)}
        return {
            (model, to.name, dict(to.options)["level"]) for model, to in found if to.name.endswith("pruning")
        }

    timed = pruned("x86.toml") | pruned("x86-densenet161.toml")
    assert pruned("levels.toml") == timed == pruned("study.toml")


def test_times_on_photographs_are_of_networks_whose_accuracy_is_known() -> None:
    known = {
        (each.dataset, each.model, each.compression)
        for each in points(EXPERIMENTS / "dlas-fashion" / "study.toml")
    }
    timed = {
        (each.dataset, each.model, each.compression)
        for each in points(EXPERIMENTS / "dlas-fashion" / "latency.toml")
    }
    assert timed < known, "a network that would be trained once more"


def test_the_study_of_sparse_networks_decides_the_observations_that_it_is_about(tmp_path: Path) -> None:
    rows = [made_up(point) for point in points(EXPERIMENTS / "sparse-networks" / "study.toml")]
    findings = observe(Evidence(with_roles(read(made_rows.write(tmp_path, rows)))))
    claims = {found.observation.number: found.claims for found in findings}
    claims["IX"] = claims["IX"][:1]  # the others are about GPUs
    for number in ("II", "IV", "IX", "X", "XII"):
        assert all(claim.verdict != OPEN for claim in claims[number]), claims[number]


def made_up(point: Any) -> Row:
    """Return a row of a point as it might end: the more is pruned, the faster and the less accurate."""
    content = point.content()
    level, trained = content["compression"].get("level", 0.0), content["dataset"]["name"] == "digits"
    told: dict[str, Any] = {"layers": [{"name": "conv1", "h": content["dataset"].get("size", 32)}]}
    told |= {"reached": {"level": level, "ratio": level}} if level else {}
    told |= {"tuning": {"trials": 4, "valid": 4}} if content["compiler"]["name"] == "metaschedule" else {}
    told |= {} if trained else {"accuracy": None, "compiled_accuracy": None}
    return made_rows.row(10 * (1 - level), **content, **{"accuracy": 0.99 - level / 100, **told})


# ---------------------------------------------------------------- on a few files in the true formats


def smaller(name: str, folder: Path, **axes: Any) -> list[Row]:
    """Run a shipped study with some axes replaced, pruning to the second level of a grid, an epoch each."""
    raw = tomllib.loads((EXPERIMENTS / name / "study.toml").read_text())
    raw["axes"] |= axes
    for each in raw["axes"]["compression"]:
        if isinstance(each, dict) and "level" in each:
            grid = parts.find("compression", each["name"]).cls.GRID
            each |= {"level": grid[1], "epochs": 1}
    raw["skip"] = []
    raw["measure"] = {"repeats": 5, "seconds": 1}
    study = folder / "study.toml"
    study.write_text(tomli_w.dumps(raw))
    command = [sys.executable, "-m", "dlas", "run", str(study), "--out", str(folder / "out")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DLAS_CACHE": str(folder / "cache")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return list(read_rows(folder / "out"))


def check(rows: list[Row]) -> None:
    """Check a row for each compression here, and that boards which are not there say so."""
    here = [row for row in rows if row.hardware["name"] == "local_cpu"]
    assert len(here) == 5 and len(rows) == 10
    for row in rows:
        assert row.status in COMPLETED or (row.status == "unsupported" and row.reason), (
            row.status,
            row.reason,
        )
    assert all(row.status == "unsupported" for row in rows if row not in here)
    for row in here:
        assert row.accuracy is not None and row.validation_accuracy is not None
        if row.compression["name"].endswith("pruning"):
            assert row.status in COMPLETED
            assert row.reached["units"] == pytest.approx(row.compression["level"], abs=0.001)
            assert [point["epochs"] for point in row.reached["curve"][1:]] == [1, 1]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_cifar10_on_a_few_images(cifar_root: Path, tmp_path: Path) -> None:
    model = {"name": "cifar_mobilenet_v2", "width": 0.25, "epochs": 1}
    check(
        smaller(
            "dlas-cifar10",
            tmp_path,
            dataset=[{"name": "cifar10", "root": str(cifar_root)}],
            model=[model],
            algorithm=["gemm"],
            compiler=["untuned"],
            hardware=["local_cpu", "hikey_970_gpu"],
        )
    )


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_imagenet_on_a_few_images(imagenet_root: Path, tmp_path: Path, workspace: Workspace) -> None:
    weights = tmp_path / "weights.safetensors"
    data = parts.make("dataset", "imagenet", {"root": str(imagenet_root), "size": 64}).load()
    # Batch norm has statistics of images: with the initial ones outputs are smaller than float16 can hold.
    network = parts.make("model", "mobilenet_v2", {"recipe": "none"}).build(data, workspace)
    save_file(network.module.state_dict(), weights)
    check(
        smaller(
            "dlas-imagenet",
            tmp_path,
            dataset=[{"name": "imagenet", "root": str(imagenet_root), "size": 64}],
            model=[{"name": "mobilenet_v2", "weights": str(weights)}],
            algorithm=["gemm"],
            compiler=["untuned"],
            hardware=["local_cpu", "hikey_970_gpu"],
        )
    )
