"""Imports point one way, and reading results needs neither torch nor tvm."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"dlas": ROOT / "dlas", "dlas.schedules": ROOT / "schedules", "dlas.sparse": ROOT / "sparse"}
MOST_LINES = 400

LAYERS = [
    # A module may import from its own line and from the lines above it.
    {"errors", "convolution", "data", "toml_file"},
    {"network", "recipe", "machine", "intervals"},
    {"stack"},
    {"fingerprint", "disturbance", "journal"},
    {"measuring", "cache", "child", "processes", "outcome", "environment"},
    {"networks", "training", "torch_model", "onnx_counting", "onnx_network", "onnx_file", "exporting",
     "onnx_layers"},
    {"datasets", "models", "compression", "schedules", "sparse", "hardware"},
    {"lowering", "torch_programs", "programs"},
    {"tuning"},
    {"compilers"},
    {"parts"},
    {"point"},
    {"choosers"},
    {"study", "testing"},
    {"results", "doctor"},
    {"analysis", "pipeline"},
    {"steps", "active"},
    {"progress", "sweep", "terminal"},
    {"running", "cli_tuning"},
    {"cli", "__main__", "__init__"},
]  # fmt: skip


def modules() -> dict[str, Path]:
    """Return every module of the package by its installed name; links are followed once."""
    found = {}
    for package, folder in FOLDERS.items():
        for path in folder.rglob("*.py"):
            inside = path.relative_to(folder)
            if package == "dlas" and inside.parts[0] in (
                "schedules",
                "sparse",
                "experiments",
                "hardware_profiles",
            ):
                continue
            found[".".join((package, *inside.with_suffix("").parts)).removesuffix(".__init__")] = path
    return found


def imports(path: Path) -> set[str]:
    """Return the modules of this package that a file imports, at its top or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name in modules() and name != "dlas"}


def layer(module: str) -> int:
    """Return a module's place in the order."""
    name = module.split(".")[1] if "." in module else "__init__"
    places = [number for number, names in enumerate(LAYERS) if name in names]
    assert places, f"{module} has no place in LAYERS: say where it belongs"
    return places[0]


@pytest.mark.parametrize("module", sorted(modules()))
def test_imports_point_one_way(module: str) -> None:
    for imported in imports(modules()[module]):
        assert layer(imported) <= layer(module), f"{module} imports {imported}"


def test_parts_do_not_import_each_other_across_axes() -> None:
    axes = {"datasets", "models", "compression", "schedules", "sparse", "choosers", "compilers", "hardware"}
    for module, path in modules().items():
        own = module.split(".")[1] if "." in module else ""
        if own in axes:
            # Both folders hold algorithms; the sparse ones use the loops and registers of the dense ones.
            shared = {"schedules"} if own == "sparse" else set()
            others = {name.split(".")[1] for name in imports(path)} & axes - {own} - shared
            assert not others, f"{module} imports from {others}"


@pytest.mark.parametrize("module", ["dlas", "dlas.study", "dlas.results", "dlas.cli", "dlas.analysis.frame",
                                    "dlas.analysis.tables", "dlas.analysis.compare",
                                    "dlas.analysis.layer_choice", "dlas.analysis.choose"])  # fmt: skip
def test_reading_results_imports_neither_torch_nor_tvm(module: str) -> None:
    code = f"import sys, {module}; sys.exit('torch' in sys.modules or 'tvm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_files_stay_small() -> None:
    sizes = {module: len(path.read_text().splitlines()) for module, path in modules().items()}
    assert {module: size for module, size in sizes.items() if size > MOST_LINES} == {}
