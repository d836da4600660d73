"""Imports point one way, and reading results needs neither torch nor tvm."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.package import ROOT, modules

STOREYS = """
    __main__ __init__
    cli
    api
    console reporting testing deployment
    analysis importing learning engine compilers choosers
    study tuning
    rows hardware lowering sparse models compression predictors
    remote
    processes
    measuring networks schedules datasets
    stack store
    errors
"""
"""The rooms of the package: imports point from a higher storey to a lower one, or stay in their room."""
HEAVY = ("torch", "tvm")


def imports(path: Path) -> set[str]:
    """Return the modules of this package that a file imports, at its top or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            named = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= named if named <= set(modules()) else {node.module} | named
    return {name for name in found if name in modules() and name != "dlas"}


def room(module: str) -> str:
    """Return the folder right below ``dlas`` that a module lies in, or its own name."""
    return module.split(".")[1] if "." in module else "__init__"


def storey(name: str) -> int:
    """Return how high a room lies, the lowest 0."""
    storeys = [line.split() for line in reversed(STOREYS.split("\n")) if line.strip()]
    places = [number for number, rooms in enumerate(storeys) if name in rooms]
    assert len(places) == 1, f"{name} must have one place in STOREYS: it has {len(places)}"
    return places[0]


@functools.cache
def graph() -> dict[str, set[str]]:
    """Return what each module imports."""
    return {module: imports(path) for module, path in modules().items()}


@pytest.mark.parametrize("module", sorted(modules()))
def test_imports_point_from_a_higher_storey_to_a_lower_one(module: str) -> None:
    for imported in graph()[module]:
        above, below = room(module), room(imported)
        assert above == below or storey(above) > storey(below), f"{module} imports {imported}"


def test_no_modules_import_each_other_in_a_circle() -> None:
    graphlib.TopologicalSorter(graph()).prepare()


def test_the_root_holds_rooms_and_hardly_any_module() -> None:
    assert sorted(
        name for name in modules() if name.count(".") == 1 and modules()[name].name != "__init__.py"
    ) == [
        "dlas.__main__",
        "dlas.errors",
    ]


def test_parts_do_not_import_each_other_across_axes() -> None:
    axes = {"datasets", "models", "compression", "schedules", "sparse", "choosers", "compilers", "hardware"}
    for module, path in modules().items():
        own = module.split(".")[1] if "." in module else ""
        if own in axes:
            # All three hold algorithms: sparse ones use the loops of dense ones, others choose among them.
            shared = {"schedules"} if own in ("sparse", "choosers") else set()
            others = {name.split(".")[1] for name in imports(path)} & axes - {own} - shared
            assert not others, f"{module} imports from {others}"


LIGHT = """
    dlas dlas.study.study dlas.rows.results dlas.cli.app dlas.rows.frame dlas.console.tables
    dlas.analysis.compare dlas.analysis.choosing.layers dlas.console.choices dlas.engine.sweep
    dlas.deployment.loading
"""


@pytest.mark.parametrize("module", LIGHT.split())
def test_reading_results_imports_neither_torch_nor_tvm(module: str) -> None:
    code = f"import sys, {module}; sys.exit(any(name in sys.modules for name in {HEAVY}))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


TESTS = ROOT / "tests"


def test_no_test_file_imports_another() -> None:
    for path in TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [f"{'.' * node.level}{node.module}.{alias.name}" for alias in node.names]
            wrong = [name for name in names if re.match(r"\.|tests\.(\w+\.)?test_", name)]
            assert not wrong, (
                f"{path.relative_to(ROOT)} imports {wrong}: what tests share is in tests/fixtures"
            )


def test_tests_lie_in_the_rooms_of_what_they_test() -> None:
    folders = {path.parent.name for path in TESTS.glob("*/*.py")}
    assert folders <= {room(module) for module in modules()} | {"fixtures", "contracts"}
