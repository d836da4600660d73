"""Find a part by its axis and name.

A part is found, in this order of looking, as ``package.module:Class`` written in
the study, as the file of that name in one of the axis's folders, or through an
entry point in the group ``dlas.<axis>``.  There is no registry to keep: dropping
a file is all it takes.  Two places that claim one name are an error.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import pkgutil
import re
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import pydantic

from dlas import stack
from dlas.errors import InputError, unknown

HOMES: dict[str, tuple[str, ...]] = {
    "dataset": ("dlas.datasets",),
    "model": ("dlas.models",),
    "compression": ("dlas.compression",),
    "algorithm": ("dlas.schedules", "dlas.sparse", "dlas.choosers"),
    "compiler": ("dlas.compilers",),
    "hardware": ("dlas.hardware_profiles",),
}
INTERFACES: dict[str, type] = {
    "dataset": stack.Dataset,
    "model": stack.Model,
    "compression": stack.Compression,
    "algorithm": stack.Algorithm,
    "compiler": stack.Backend,
    "hardware": stack.Hardware,
}
DRIVERS = "dlas.hardware.drivers"
PROFILES = Path(next(iter(importlib.import_module("dlas.hardware_profiles").__path__)))
LIBRARY = "library"
"""Value of the algorithm axis where the compiler brings kernels of its own."""


@dataclass(frozen=True)
class Found:
    """A part's class, and the fields that its name has already fixed (a board's profile, say)."""

    interface: str
    cls: type[Any]
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        """Return every option's default by name; ``dataclasses.MISSING`` where one must be given."""
        return {
            f.name: f.default if f.default_factory is MISSING else f.default_factory()
            for f in fields(self.cls)
            if f.name not in self.fixed
        }

    def validate(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options that differ from their defaults, each in its field's own type.

        Leaving the defaults out keeps a point's identity the same whether a
        default was written down or not, and when a part gains an option.

        Raises
        ------
        InputError
            For an unknown or missing option, or a value that its field refuses.
        """
        known = self.options()
        hints = typing.get_type_hints(self.cls, include_extras=True)
        options = {}
        for key, value in given.items():
            if key not in known:
                raise unknown(f"option of {self.interface} {name!r}", key, known or ["none at all"])
            try:
                checked = pydantic.TypeAdapter(hints[key]).validate_python(value, strict=True)
            except pydantic.ValidationError as error:
                problem = ", or: ".join(dict.fromkeys(each["msg"] for each in error.errors()))
                raise InputError(f"{self.interface} {name!r}: option {key} = {value!r}: {problem}") from None
            if known[key] is MISSING or checked != known[key]:
                options[key] = checked
        missing = [key for key, default in known.items() if default is MISSING and key not in options]
        if missing:
            raise InputError(f"{self.interface} {name!r} needs the option {missing[0]!r}")
        return options


def names(axis: str) -> list[str]:
    """Return the name of every part of an axis, built in or installed."""
    found = set(_files(axis)) | {entry.name for entry in _entries(axis)}
    if axis == "model":
        found |= set(_torchvision().names())
    return sorted(found)


@functools.cache
def find(axis: str, name: str) -> Found:
    """Return the part called ``name``.

    Parameters
    ----------
    axis : str
        One of :data:`dlas.stack.PART_AXES`.
    name : str
        A file's name, an entry point's, ``package.module:Class``, or for
        hardware also the path of a profile (``*.toml``).

    Raises
    ------
    InputError
        If there is no such part, two places claim the name, or what is there
        is not a part of this axis.
    """
    if ":" in name:
        return Found(axis, _class_path(axis, name))
    if axis == "hardware" and name.endswith(".toml"):
        return _profile(Path(name))
    claims: list[str | Path | EntryPoint] = []
    if name in _files(axis):
        claims.append(_files(axis)[name])
    claims += [entry for entry in _entries(axis) if entry.name == name]
    if len(claims) > 1:
        raise InputError(f"{axis} {name!r} is claimed twice: {', '.join(map(str, claims))}")
    if not claims:
        if axis == "model" and name in _torchvision().names():
            return Found(axis, _part_in(axis, _torchvision()), {"name": name})
        raise unknown(axis, name, names(axis))
    (claim,) = claims
    if isinstance(claim, EntryPoint):
        return Found(axis, _checked(axis, claim.load(), claim.value))
    if isinstance(claim, Path):
        return _profile(claim)
    return Found(axis, _part_in(axis, importlib.import_module(claim)))


def make(axis: str, name: str, options: Mapping[str, Any]) -> Any:
    """Return the part ``name`` with its (validated) options."""
    found = find(axis, name)
    return found.cls(**found.fixed, **options)


@functools.cache
def _files(axis: str) -> dict[str, str | Path]:
    """Return, by part name, the module that defines it, or a device's profile."""
    if axis == "hardware":
        return {path.stem: path for path in PROFILES.glob("*.toml")}
    found: dict[str, str | Path] = {}
    for home in HOMES[axis]:
        package = importlib.import_module(home)
        for module in pkgutil.iter_modules(package.__path__):
            if module.ispkg or (axis, module.name) == ("model", "torchvision"):
                continue
            if module.name in found:
                raise InputError(f"{axis} {module.name!r} is claimed twice: {found[module.name]}, {home}")
            found[module.name] = f"{home}.{module.name}"
    return found


@functools.cache
def _entries(axis: str) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=f"dlas.{axis}"))


def _torchvision() -> Any:
    """Return the module of the one part that goes by many names: a torchvision model is called by its own."""
    return importlib.import_module("dlas.models.torchvision")


def _part_in(axis: str, module: Any) -> type[Any]:
    """Return the one class of a module that is a part of the axis; those with an underscore are its own."""
    classes = [
        value
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and not name.startswith("_")
        and value.__module__ == module.__name__
        and issubclass(value, INTERFACES[axis])
    ]
    classes = [cls for cls in classes if not inspect.isabstract(cls)]
    if len(classes) != 1:
        raise InputError(
            f"{module.__name__} must define exactly one {INTERFACES[axis].__name__}; "
            f"it defines {[cls.__name__ for cls in classes] or 'none'}"
        )
    return classes[0]


def _class_path(axis: str, name: str) -> type[Any]:
    """Return the class written out as ``package.module:Class``."""
    if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", name):
        raise InputError(f"{axis} {name!r} is not of the form 'package.module:Class'")
    module_name, _, attribute = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise InputError(f"{axis} {name!r}: cannot import {module_name!r}: {error}") from None
    if not hasattr(module, attribute):
        classes = [key for key, value in vars(module).items() if inspect.isclass(value)]
        raise unknown(f"class in {module_name}", attribute, classes)
    return _checked(axis, getattr(module, attribute), name)


def _checked(axis: str, cls: Any, name: str) -> type[Any]:
    """Return ``cls`` if it is a part of the axis."""
    interface = INTERFACES[axis]
    if not (inspect.isclass(cls) and issubclass(cls, interface)):
        raise InputError(f"{axis} {name!r} is not a dlas.stack.{interface.__name__}")
    if inspect.isabstract(cls):
        raise InputError(
            f"{axis} {name!r} does not define {', '.join(sorted(vars(cls)['__abstractmethods__']))}"
        )
    return typing.cast(type[Any], cls)


def _profile(path: Path) -> Found:
    """Return the driver of the device that a profile describes, with the profile bound to it."""
    from dlas.hardware.profile import Profile

    profile = Profile.read(path)
    drivers = {found.name for found in pkgutil.iter_modules(importlib.import_module(DRIVERS).__path__)}
    if profile.driver not in drivers:
        raise unknown(f"driver in {path.name}", profile.driver, drivers)
    driver = importlib.import_module(f"{DRIVERS}.{profile.driver}")
    return Found("hardware", _part_in("hardware", driver), {"profile": profile})
