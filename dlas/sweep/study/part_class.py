"""The classes of parts: find one in a module, and validate its options."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Hashable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from types import ModuleType
from typing import Any

import pydantic

from dlas import stack
from dlas.errors import InputError, unknown
from dlas.sweep.study.named_objects import object_at

INTERFACES: dict[str, type] = {
    "dataset": stack.Dataset,
    "model": stack.Model,
    "compression": stack.Compression,
    "algorithm": stack.Algorithm,
    "compiler": stack.Backend,
    "hardware": stack.Hardware,
    "predictor": stack.Predictor,
}


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


@functools.cache
def _adapter(cls: Hashable, option: str) -> pydantic.TypeAdapter[Any]:
    """Return what checks the values of an option; it takes long to make, and a study has thousands."""
    return pydantic.TypeAdapter(typing.get_type_hints(cls, include_extras=True)[option])


def part_in(axis: str, module: ModuleType) -> type[Any]:
    """Return the only class of a module that is a part of the axis, ignoring private names.

    Raises
    ------
    InputError
        If it defines none or several.
    """
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


def class_at(axis: str, name: str) -> type[Any]:
    """Return the class named as ``package.module:Class`` or ``file.py:Class``.

    Raises
    ------
    InputError
        If it does not exist or is not a part of the axis.
    """
    return checked_class(axis, object_at(name, axis), name)


def checked_class(axis: str, cls: object, name: str) -> type[Any]:
    """Return ``cls`` if it is a part of the axis.

    Raises
    ------
    InputError
        If it is not, or is abstract.
    """
    interface = INTERFACES[axis]
    if not (inspect.isclass(cls) and issubclass(cls, interface)):
        raise InputError(f"{axis} {name!r} is not a dlas.stack.{interface.__name__}")
    if inspect.isabstract(cls):
        raise InputError(
            f"{axis} {name!r} does not define {', '.join(sorted(vars(cls)['__abstractmethods__']))}"
        )
    return typing.cast(type[Any], cls)
