"""Profiles: devices described in TOML by their facts, their TVM target and their driver."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Annotated, Any

import pydantic
from pydantic import ConfigDict, Field, StringConstraints

from dlas.bench.remote.address import PORT, TIMEOUT_S, Address
from dlas.bench.remote.tokens import KEY
from dlas.bench.store import toml
from dlas.errors import InputError, one_line

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Fact = int | float | str
_AMOUNT = re.compile(r"\w+_(hz|bytes|cores|levels|flops)|cores|boards")
"""Facts that must be positive numbers, by their name's unit."""


class ServerAddress(pydantic.BaseModel):
    """Where `dlas serve` on a board is reached, and what links libraries for it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    host: Text
    """Name or number; ``127.0.0.1`` at this end of an SSH tunnel."""
    port: Annotated[int, Field(ge=1, le=65_535)] = PORT
    """By default that of `dlas serve`."""
    key: Annotated[str, StringConstraints(pattern=f"^{KEY.pattern}$")]
    """What the server calls itself."""
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = TIMEOUT_S
    """The longest session in seconds, after which the server ends it: a kernel that never ends holds the
    board no longer than this.
    """
    token_file: Text | None = None
    """The file with the server's token; by default ``~/.config/dlas/tokens/KEY``."""
    compiler: Text | None = None
    """The C compiler on this machine that links for the board, such as ``aarch64-linux-gnu-gcc``; by default
    this machine's own. The board needs none.
    """

    def address(self) -> Address:
        """Return where the server is reached, with the token that this machine has for it.

        Raises
        ------
        Unreachable
            If it has none.
        InputError
            If the key has other characters than names of files.
        """
        token_file = Path(self.token_file) if self.token_file else None
        return Address.of(self.host, self.port, self.key, self.timeout, token_file)


class ClockAccess(pydantic.BaseModel):
    """Whether studies may set the device's clocks."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    settable: bool = False
    """Whether they may. What was found is restored after every point, also where the process is killed."""
    root: Text = "/"
    """The folder that holds sys; in a container it may be another one. A board's server has its own."""


class Profile(pydantic.BaseModel):
    """One device."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Text
    """The file's name, which is the part's name."""
    title: Text
    """A name for people."""
    driver: Name
    """The module in ``dlas/axes/hardware/drivers`` that runs programs on it."""
    unsupported: Text | None = None
    """Why it cannot be used."""
    target: dict[str, Any] = Field(default_factory=dict)
    """A TVM target, as ``tvm.target.Target`` takes it; empty if the driver detects it."""
    rpc: ServerAddress | None = None
    """Where a board is reached."""
    clocks: ClockAccess = ClockAccess()
    """Whether its clocks may be set."""
    facts: dict[Name, Fact] = Field(default_factory=dict)
    """Further properties, in SI units with the unit as the name's suffix."""

    def __hash__(self) -> int:
        """Hash the content, since mappings are not hashable."""
        return hash(self.model_dump_json())

    @classmethod
    def read(cls, path: Path) -> Profile:
        """Return the profile in a file.

        Raises
        ------
        InputError
            If the file cannot be read, is not TOML, or has invalid keys or values; names
            the file, the key and the value.
        """
        raw = toml.read(path, "profile")
        if "name" in raw:
            raise InputError(f"{path}: name = {raw['name']!r}: a device is called by its file's name")
        try:
            return cls(**raw, name=path.stem)
        except pydantic.ValidationError as error:
            raise InputError(f"{path}: {_problem(error)}") from None

    @pydantic.field_validator("target")
    @classmethod
    def _target_is_complete(cls, target: dict[str, Any]) -> dict[str, Any]:
        """Refuse a target that TVM would silently complete with the host's values."""
        if not _finite(target):
            raise ValueError("its numbers are finite")
        if target and not isinstance(target.get("kind"), str):
            raise ValueError('a target needs its kind, e.g. kind = "llvm"')
        host = target.get("host", {})
        if not isinstance(host, dict):
            raise ValueError(f"host = {host!r} is not a table")
        for part in (target, host):
            if part.get("kind") == "llvm" and not isinstance(part.get("mcpu"), str):
                raise ValueError('an llvm target needs its processor, e.g. mcpu = "cortex-a73"')
            cores = part.get("num-cores", 1)
            if not isinstance(cores, int) or cores < 1:
                raise ValueError(f"num-cores = {cores!r} is not a number of cores")
        return target

    @pydantic.field_validator("facts")
    @classmethod
    def _amounts_are_positive(cls, facts: dict[str, Fact]) -> dict[str, Fact]:
        for name, value in facts.items():
            if not _finite(value):
                raise ValueError(f"{name} = {value!r} must be finite")
            if _AMOUNT.fullmatch(name) and not (isinstance(value, int | float) and value > 0):
                raise ValueError(f"{name} = {value!r} must be a positive number")
        return facts


TABLES: dict[str, type[pydantic.BaseModel]] = {"rpc": ServerAddress, "clocks": ClockAccess}
"""Tables of a profile that are models of their own."""


def _finite(value: object) -> bool:
    """Return whether all numbers in a value of TOML are finite."""
    if isinstance(value, dict | list):
        return all(map(_finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or math.isfinite(value)


def _problem(error: pydantic.ValidationError) -> str:
    """Return the first problem in one line, with the valid keys if a key is unknown."""
    first = error.errors()[0]
    key = one_line(".".join(str(part) for part in first["loc"] if part not in ("int", "float", "str")))
    if first["type"] == "extra_forbidden":
        model = TABLES.get(str(first["loc"][0]), Profile)
        keys = [name for name in model.model_fields if name != "name"]
        return f"unknown key {key!r} (there are: {', '.join(keys)})"
    if first["type"] == "missing":
        return f"{key} is missing"
    message = first["msg"].removeprefix("Value error, ")
    return f"{key} = {first['input']!r}: {message}"
