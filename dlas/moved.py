"""Where modules lay before 0.2: the old names work for this version, with a warning."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_ROOMS = {
    "analysis": ("importing",),
    "axes": ("choosers", "compilers", "compression", "datasets", "hardware", "models"),
    "bench": ("measuring", "processes", "remote", "store"),
    "face": ("api", "cli", "console", "reporting"),
    "lowering": ("tuning",),
    "prediction": ("learning", "predictors"),
    "sweep": ("engine", "rows", "study"),
}
"""The folders that lay in ``dlas`` itself, by the room that they lie in now."""
_FOLDERS = {
    "lowering.graph": (
        "bfloat16",
        "from_torch",
        "half_precision",
        "importing",
        "quantised",
        "reshapes",
        "scalars",
        "simplify",
    ),
    "lowering.kernels": (
        "attention",
        "convolutions",
        "described",
        "edges",
        "fusing",
        "layouts",
        "products",
        "regions",
        "tail",
    ),
    "lowering.operators": ("layout_changes", "pooling", "softmax"),
}
"""The modules that lay in a room itself, by the folder that they lie in now."""
_PREFIXED = {
    "exported": ("files", "modules"),
    "onnx": ("counting", "files", "folding", "halves", "network", "operators", "quantisation"),
    "torch": ("model", "network", "operators", "parameters", "recording"),
}
"""The modules of ``networks`` whose prefix is a folder now."""
NEW_NAMES: dict[str, str] = {
    **{f"dlas.{name}": f"dlas.{room}.{name}" for room, names in _ROOMS.items() for name in names},
    **{
        f"dlas.{folder.partition('.')[0]}.{name}": f"dlas.{folder}.{name}"
        for folder, names in _FOLDERS.items()
        for name in names
    },
    **{
        f"dlas.networks.{prefix}_{name}": f"dlas.networks.{prefix}.{name}"
        for prefix, names in _PREFIXED.items()
        for name in names
    },
}
"""The new name of each module that moved, by its old one; what lies in a package moved along."""
KEPT = "dlas.models"
"""An old name that stays: a network of one's own is made by ``dlas.models.from_torch``."""


def new_name(module: str) -> str | None:
    """Return the name that a module has now, None for one that did not move."""
    name, rest = module, ""
    while name:
        if name in NEW_NAMES:
            return NEW_NAMES[name] + rest
        name, dot, last = name.rpartition(".")
        rest = dot + last + rest
    return None


class MovedFinder(MetaPathFinder):
    """Finds a module by its old name, and warns."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to import the module that has this old name."""
        name = new_name(fullname) if fullname.startswith("dlas.") else None
        real = name and importlib.util.find_spec(name)
        if not name or not real:
            return None
        if fullname in NEW_NAMES and fullname != KEPT:  # once for all that lies in a package
            warnings.warn(f"{fullname} is {name} now", FutureWarning, stacklevel=2)
        spec = ModuleSpec(fullname, _Alias(name), origin=real.origin)
        spec.submodule_search_locations = real.submodule_search_locations
        return spec


class _Alias(Loader):
    """Gives the module of a new name for an old one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module itself, imported by its new name."""
        module = importlib.import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as it is: it has run, and keeps its own name."""
        module.__spec__ = self._spec


def install() -> None:
    """Let old names be found, before a folder of a package is searched for them."""
    if not any(isinstance(finder, MovedFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, MovedFinder())
