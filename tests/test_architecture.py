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
    face
    deployment testing
    prediction
    analysis
    sweep
    axes
    lowering
    networks
    bench sparse
    schedules
    stack
    errors moved
"""
"""The rooms of the package: imports point from a higher storey to a lower one, or stay in their room."""
FLOORS = {
    "bench": "remote / processes / clocks / measuring / engines store",
    "face": "cli / api / atlas / console reporting / tables",
    "lowering": "lower tuning / webassembly / kernels / operators / graph / machine_code / target",
    "prediction": "adaptive / learning / predictors",
    "sweep": "cluster / engine / study / rows",
}
"""The same for the folders of a room, from the highest to the lowest, and for modules beside them."""
HEAVY = ("torch", "tvm")


def imports(path: Path) -> set[str]:
    """Return the modules of this package that a file imports, at its top or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            named = {f"{node.module}.{alias.name}" for alias in node.names}
            # `from dlas import errors` needs the module alone, `from dlas import run` the whole package.
            found |= named if named <= set(modules()) else {node.module} | named
    return found & set(modules())


def room(module: str) -> str:
    """Return the folder right below ``dlas`` that a module lies in, or its own name."""
    return module.split(".")[1] if "." in module else "__init__"


def floor(module: str) -> int | None:
    """Return how high a module lies in its room, the lowest 0; None where that is not said.

    Every folder of a room with floors has one; a module beside them only if it is named.
    """
    path = module.split(".")[1:]
    floors = FLOORS.get(path[0], "").split("/") if len(path) > 1 else []
    if len(floors) < 2 or (len(path) == 2 and path[1] not in " ".join(floors).split()):
        return None
    return height(path[1], floors)


def storey(name: str) -> int:
    """Return how high a room lies, the lowest 0."""
    return height(name, STOREYS.strip().split("\n"))


def height(name: str, storeys: list[str]) -> int:
    places = [number for number, rooms in enumerate(reversed(storeys)) if name in rooms.split()]
    assert len(places) == 1, f"{name} must have one place among the storeys: it has {len(places)}"
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


@pytest.mark.parametrize("module", sorted(modules()))
def test_imports_within_a_room_point_down(module: str) -> None:
    own = floor(module)
    for imported in graph()[module]:
        other = floor(imported)
        if room(module) == room(imported) and own is not None and other is not None:
            same = module.split(".")[:3] == imported.split(".")[:3]
            assert same or own > other, f"{module} imports {imported}"


def test_no_modules_import_each_other_in_a_circle() -> None:
    graphlib.TopologicalSorter(graph()).prepare()


def test_the_root_holds_rooms_and_hardly_any_module() -> None:
    assert sorted(
        name for name in modules() if name.count(".") == 1 and modules()[name].name != "__init__.py"
    ) == [
        "dlas.__main__",
        "dlas.errors",
        "dlas.moved",
    ]


def layer(module: str) -> str:
    """Return the folder of an axis that a module lies in; empty for one that lies in none."""
    path = module.split(".")
    if path[1:2] == ["axes"]:
        return path[2] if len(path) > 2 else ""
    return path[1] if path[1:2] in (["schedules"], ["sparse"]) else ""


def test_parts_do_not_import_each_other_across_axes() -> None:
    for module in modules():
        own = layer(module)
        if own:
            # All three hold algorithms: sparse ones use the loops of dense ones, others choose among them.
            shared = {"schedules"} if own in ("sparse", "choosers") else set()
            others = {layer(name) for name in graph()[module]} - {"", own} - shared
            assert not others, f"{module} imports from {others}"


def test_no_public_class_name_stands_twice() -> None:
    places: dict[str, list[str]] = {}
    for module, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(module)
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert not twice, "a renamed class says what it is in the field's term"


LIGHT = """
    dlas dlas.sweep.study.study dlas.sweep.rows.results dlas.sweep.rows.frame dlas.sweep.engine.sweep
    dlas.face.cli.app dlas.face.tables.points dlas.face.tables.choices
    dlas.analysis.compare dlas.analysis.choosing.layers dlas.deployment.loading
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
    folders = {".".join(path.parent.relative_to(TESTS).parts) for path in TESTS.rglob("test_*.py")}
    packages = {name.partition(".")[2] for name, path in modules().items() if path.name == "__init__.py"}
    assert folders <= packages | {"contracts", "docs"}
