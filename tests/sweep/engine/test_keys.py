"""What the keys of networks, builds and rows hold, for every part found: the code that decides, no more."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

from dlas.bench.store.fingerprint import SourceTree
from dlas.stack import PART_AXES, MeasureSettings, Program
from dlas.sweep.engine.planning import PLUMBING, Planner
from dlas.sweep.study import parts
from dlas.sweep.study.point import Choice, Point
from tests.fixtures.package import modules

READERS = ("dlas.analysis", "dlas.face", "dlas.prediction", "dlas.sweep.rows")
"""What reads rows or shows them; what it says decides on no row."""
BUILDERS = (
    "dlas.lowering",
    "dlas.schedules",
    "dlas.sparse",
    "dlas.lowering.tuning",
    "dlas.axes.compilers",
    "dlas.axes.hardware",
)
PARTS = [(axis, name) for axis in PART_AXES for name in parts.names(axis)]


@functools.cache
def closure(axis: str, name: str) -> frozenset[str]:
    """Return the modules that a part brings into a key."""
    return SourceTree().closure([parts.find(axis, name).cls.__module__], outside=PLUMBING)


def under(modules: frozenset[str], packages: tuple[str, ...]) -> list[str]:
    return sorted(m for m in modules if f"{m}.".startswith(tuple(f"{package}." for package in packages)))


@pytest.mark.parametrize(("axis", "name"), PARTS, ids=str)
def test_nothing_that_reads_rows_is_in_a_parts_key(axis: str, name: str) -> None:
    found = closure(axis, name)
    assert "dlas" not in found
    assert not under(found, READERS)


@pytest.mark.parametrize(
    ("axis", "name"),
    [each for each in PARTS if each[0] in ("dataset", "model", "compression")],
    ids=lambda e: e,
)
def test_nothing_that_builds_is_in_a_networks_key(axis: str, name: str) -> None:
    assert not under(closure(axis, name), BUILDERS)


def pruned(compiler: str) -> Point:
    """Return a point with a pruned network."""
    return Point(
        Choice("digits"),
        Choice("cifar_resnet18"),
        Choice("weight_pruning", (("level", 0.5),)),
        Choice("direct"),
        Choice(compiler),
        Choice("local_cpu"),
        batch=1,
        seed=0,
    )


@pytest.mark.parametrize("step", ["network", "tune", "build", "memory", "check", "measure"])
def test_nothing_that_reads_rows_is_in_the_key_of_a_step(step: str) -> None:
    modules = Planner(MeasureSettings(), Path("cache")).modules(step, pruned("metaschedule"))
    assert f"dlas.sweep.engine.steps.{step}" in modules
    assert not under(modules, READERS)


def keys(edits: dict[str, str], compiler: str = "hand") -> dict[str, str]:
    """Return the keys of a pruned network, its build and its row, were the sources so edited."""
    plan = Planner(MeasureSettings(), Path("cache"), SourceTree(edits)).plan(pruned(compiler))
    return {**plan.artifacts(), "row": plan.key}


def changed(edits: dict[str, str], compiler: str = "hand") -> set[str]:
    """Return which keys would change."""
    before, after = keys({}, compiler), keys(edits, compiler)
    return {name for name in before if before[name] != after[name]}


def replaced(module: str, old: str, new: str) -> dict[str, str]:
    """Return the edit of one place in a module."""
    text = SourceTree().text(module)
    assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {module}"
    return {module: text.replace(old, new)}


def test_a_constant_of_the_analysis_changes_no_key() -> None:
    assert (
        changed(replaced("dlas.sweep.rows.labels", "MOST_CHARACTERS = 160", "MOST_CHARACTERS = 161")) == set()
    )


class Reworded(ast.NodeTransformer):
    """Says something else in every docstring, those of constants too."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            node.value = ast.Constant("Something else.")
        return node


@pytest.mark.slow
def test_docstrings_change_no_key() -> None:
    edits = {name: ast.unparse(Reworded().visit(ast.parse(SourceTree().text(name)))) for name in modules()}
    assert sum(text.count("Something else.") for text in edits.values()) > 1000
    assert changed(edits) == set()


def test_the_rule_by_which_builds_are_accepted_is_in_the_keys_of_rows_and_of_nothing_else() -> None:
    edit = replaced("dlas.sweep.engine.steps.check", "error <= tolerance", "2 * error <= tolerance")
    assert changed(edit) == {"row"}


def test_how_builds_are_timed_is_in_the_keys_of_rows_and_of_nothing_else() -> None:
    edit = {
        "dlas.sweep.engine.steps.measure": SourceTree().text("dlas.sweep.engine.steps.measure") + "RUNS = 3\n"
    }
    assert changed(edit) == {"row"}


def test_how_a_network_is_trained_is_in_all_that_follows() -> None:
    edit = {"dlas.networks.training": SourceTree().text("dlas.networks.training") + "EPOCHS = 3\n"}
    assert changed(edit) == {"network", "build", "row"}


def test_a_schedule_is_in_the_keys_of_its_builds_and_searches() -> None:
    edit = {"dlas.schedules.direct": SourceTree().text("dlas.schedules.direct") + "LOOPS = 3\n"}
    assert changed(edit, "metaschedule") == {"tuning", "build", "row"}


def test_a_method_added_to_the_interface_of_compilers_changes_no_networks_key() -> None:
    method = "class Program(ABC):\n    def energy(self) -> float:\n        return 0.0\n"
    edit = replaced(Program.__module__, "class Program(ABC):\n", method)
    assert "network" not in changed(edit)
    assert "build" in changed(edit)
