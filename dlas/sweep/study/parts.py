"""Find a part by its axis and name.

A part is found as ``package.module:Class`` or ``file.py:Class`` written in the study, as the file of that
name in one of the axis's folders, or through an entry point in the group
``dlas.<axis>``.  There is no registry: adding a file is enough.  Two places that
claim the same name are an error.

A file whose part has other names than the file's defines a function ``names`` that
returns them; the part gets the name in its field ``name``.  Files and entry points
take precedence over such names.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pkgutil
import re
import typing
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import pydantic

from dlas.errors import InputError, unknown
from dlas.stack import AlgorithmChooser
from dlas.sweep.study.named_objects import checked_class, class_at, part_in

HOMES: dict[str, tuple[str, ...]] = {
    "dataset": ("dlas.axes.datasets",),
    "model": ("dlas.axes.models",),
    "compression": ("dlas.axes.compression",),
    "algorithm": ("dlas.schedules", "dlas.sparse", "dlas.axes.choosers"),
    "compiler": ("dlas.axes.compilers",),
    "hardware": ("dlas.hardware_profiles",),
    "predictor": ("dlas.prediction.predictors",),
}
"""The packages whose files are parts: modules, and for hardware profiles (``*.toml``).

By axis; ``predictor`` is none of a study's.
"""
DRIVERS = "dlas.axes.hardware.drivers"
PROFILES = Path(next(iter(importlib.import_module("dlas.hardware_profiles").__path__)))
LIBRARY = "library"
"""Value of the algorithm axis if the compiler has kernels of its own."""
NAMES = re.compile(r"^def names\(", re.MULTILINE)
"""The definition that marks a module whose part has other names than the file's."""


@dataclass(frozen=True)
class PartClass:
    """A part's class, and the fields that the part's name fixes (a board's profile, for example)."""

    axis: str
    """One of :data:`dlas.stack.PART_AXES`."""
    cls: type[Any]
    """Implements the axis's interface."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Values of fields that are not options."""

    def options(self) -> dict[str, Any]:
        """Return every option's default by name; ``dataclasses.MISSING`` for required options."""
        return {
            option.name: option.default if option.default_factory is MISSING else option.default_factory()
            for option in fields(self.cls)
            if option.name not in self.fixed
        }

    def validate(self, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options that differ from their defaults, each in its field's type.

        Without the defaults, a point's identity does not depend on whether a default
        was written down, and does not change when a part gains an option.

        Raises
        ------
        InputError
            For an unknown or missing option, or a value that its field refuses.
        """
        defaults = self.options()
        options = {}
        for key, value in values.items():
            if key not in defaults:
                raise unknown(f"option of {self.axis} {name!r}", key, defaults or ["none at all"])
            try:
                checked = _adapter(typing.cast(Hashable, self.cls), key).validate_python(value, strict=True)
            except pydantic.ValidationError as error:
                problem = ", or: ".join(dict.fromkeys(problem["msg"] for problem in error.errors()))
                raise InputError(f"{self.axis} {name!r}: option {key} = {value!r}: {problem}") from None
            if defaults[key] is MISSING or checked != defaults[key]:
                options[key] = checked
        missing = [key for key, default in defaults.items() if default is MISSING and key not in options]
        if missing:
            raise InputError(f"{self.axis} {name!r} needs the option {missing[0]!r}")
        return options

    def make(self, options: Mapping[str, Any]) -> Any:
        """Return the part with its (validated) options."""
        return self.cls(**self.fixed, **options)


@dataclass(frozen=True)
class PartClaim:
    """A place that defines a part of some name, and a function that loads the part's class."""

    name: str
    place: str
    load: Callable[[], PartClass]


def installed(axis: str) -> Iterable[EntryPoint]:
    """Return the entry points that installed packages have for an axis."""
    return entry_points(group=f"dlas.{axis}")


class Finder:
    """Finds parts, and caches them.

    Parameters
    ----------
    homes : mapping
        By axis, the packages whose files are parts.
    entries : callable
        Returns the entry points of an axis.
    """

    def __init__(
        self,
        homes: Mapping[str, Sequence[str]] = HOMES,
        entries: Callable[[str], Iterable[EntryPoint]] = installed,
    ) -> None:
        self._homes, self._entries = homes, entries
        self._claims: dict[str, list[PartClaim]] = {}
        self._by_other_names: dict[str, dict[str, PartClaim]] = {}
        self._classes: dict[tuple[str, str], PartClass] = {}

    def class_in(self, axis: str, module: str) -> type[Any]:
        """Return the class of the part that a module defines."""
        return part_in(axis, importlib.import_module(module))

    def names_in(self, module: str) -> list[str]:
        """Return the names that a module says its part has."""
        return list(importlib.import_module(module).names())

    def names(self, axis: str) -> list[str]:
        """Return the name of every part of an axis, built in or installed."""
        return sorted({claim.name for claim in self._claims_of(axis)} | set(self._other_names(axis)))

    def plain_names(self, axis: str) -> frozenset[str]:
        """Return the names of an axis's parts that are a file's or an entry point's: nothing is imported."""
        return frozenset(claim.name for claim in self._claims_of(axis))

    def modules(self, axis: str) -> list[list[str]]:
        """Return the names of an axis's parts, those together that one module defines."""
        by_place: dict[str, list[str]] = {}
        for claim in (*self._claims_of(axis), *self._other_names(axis).values()):
            by_place.setdefault(claim.place, []).append(claim.name)
        return sorted(map(sorted, by_place.values()))

    def find(self, axis: str, name: str) -> PartClass:
        """Return the class of the part called ``name``.

        Parameters
        ----------
        axis : str
            One of :data:`dlas.stack.PART_AXES`.
        name : str
            A file's name, an entry point's, ``package.module:Class``, ``file.py:Class``, or for
            hardware also the path of a profile (``*.toml``).

        Raises
        ------
        InputError
            If there is no such part, two places claim the name, or it is not a part
            of this axis.
        """
        if (axis, name) not in self._classes:
            part = self._find(axis, name)
            if issubclass(part.cls, AlgorithmChooser):
                part = replace(part, fixed={**part.fixed, "make": partial(self.checked, axis)})
            self._classes[axis, name] = part
        return self._classes[axis, name]

    def make(self, axis: str, name: str, options: Mapping[str, Any]) -> Any:
        """Return the part ``name`` with its (validated) options."""
        return self.find(axis, name).make(options)

    def checked(self, axis: str, name: str, options: Mapping[str, Any]) -> Any:
        """Return the part ``name`` with options that are validated first.

        Raises
        ------
        InputError
            If there is no such part, or it does not take these options.
        """
        part = self.find(axis, name)
        return part.make(part.validate(name, options))

    def _find(self, axis: str, name: str) -> PartClass:
        if ":" in name:
            return PartClass(axis, class_at(axis, name))
        if axis == "hardware" and name.endswith(".toml"):
            return self._of_profile(Path(name))
        claims = [claim for claim in self._claims_of(axis) if claim.name == name]
        if not claims and name in self._other_names(axis):
            claims = [self._other_names(axis)[name]]
        if not claims:
            raise unknown(axis, name, self.names(axis))
        if len(claims) > 1:
            places = ", ".join(claim.place for claim in claims)
            raise InputError(f"{axis} {name!r} is claimed twice: {places}")
        return claims[0].load()

    def _claims_of(self, axis: str) -> list[PartClaim]:
        """Return the claims of the axis's folders and of installed packages."""
        if axis not in self._claims:
            modules = [module for module in _modules(self._homes[axis]) if not _has_other_names(module)]
            profiles, entries = _profiles(self._homes[axis]), self._entries(axis)
            self._claims[axis] = [
                *(
                    PartClaim(_last(module), module, partial(self._of_module, axis, module))
                    for module in modules
                ),
                *(PartClaim(path.stem, str(path), partial(self._of_profile, path)) for path in profiles),
                *(PartClaim(entry.name, str(entry), partial(_of_entry, axis, entry)) for entry in entries),
            ]
        return self._claims[axis]

    def _other_names(self, axis: str) -> dict[str, PartClaim]:
        """Return the claims of modules whose parts have other names than the file's."""
        if axis not in self._by_other_names:
            self._by_other_names[axis] = {
                name: PartClaim(name, module, partial(self._of_module, axis, module, name=name))
                for module in filter(_has_other_names, _modules(self._homes[axis]))
                for name in self.names_in(module)
            }
        return self._by_other_names[axis]

    def _of_module(self, axis: str, module: str, **fixed: str) -> PartClass:
        return PartClass(axis, self.class_in(axis, module), fixed)

    def _of_profile(self, path: Path) -> PartClass:
        """Return the driver of the device that a profile describes, with the profile bound to it."""
        from dlas.axes.hardware.profile import Profile

        profile = Profile.read(path)
        drivers = {module.name for module in pkgutil.iter_modules(importlib.import_module(DRIVERS).__path__)}
        if profile.driver not in drivers:
            raise unknown(f"driver in {path.name}", profile.driver, drivers)
        driver = self.class_in("hardware", f"{DRIVERS}.{profile.driver}")
        return PartClass("hardware", driver, {"profile": profile})


FINDER = Finder()
"""Finds the parts of this process."""
names = FINDER.names
plain_names = FINDER.plain_names
find = FINDER.find
make = FINDER.make
checked = FINDER.checked


@functools.cache
def _adapter(cls: Hashable, option: str) -> pydantic.TypeAdapter[Any]:
    """Return what checks the values of an option; it takes long to make, and a study has thousands."""
    return pydantic.TypeAdapter(typing.get_type_hints(cls, include_extras=True)[option])


def _last(module: str) -> str:
    """Return a module's own name."""
    return module.rpartition(".")[2]


def _modules(homes: Iterable[str]) -> list[str]:
    """Return the modules in an axis's folders; packages among them hold shared code."""
    return [
        f"{home}.{module.name}"
        for home in homes
        for module in pkgutil.iter_modules(importlib.import_module(home).__path__)
        if not module.ispkg
    ]


def _has_other_names(module: str) -> bool:
    """Return whether a module defines the names of its part, without importing it."""
    spec = importlib.util.find_spec(module)
    source = getattr(spec and spec.loader, "get_source", lambda name: None)(module)
    return NAMES.search(source or "") is not None


def _profiles(homes: Iterable[str]) -> list[Path]:
    """Return the profiles in an axis's folders."""
    folders = [Path(folder) for home in homes for folder in importlib.import_module(home).__path__]
    return [profile for folder in folders for profile in folder.glob("*.toml")]


def _of_entry(axis: str, entry: EntryPoint) -> PartClass:
    return PartClass(axis, checked_class(axis, entry.load(), entry.value))
