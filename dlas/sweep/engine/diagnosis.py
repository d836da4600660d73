"""Whether this machine or a board is fit to measure on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlas.errors import InputError

if TYPE_CHECKING:
    from dlas.bench.measuring.doctor import SystemCheck


def examine(device: str | None = None) -> list[SystemCheck]:
    """Return the checks of this machine, or of a board.

    Parameters
    ----------
    device : str, optional
        A board's profile.

    Raises
    ------
    InputError
        If there is no such profile, or it is no board's.
    """
    if device is None:
        from dlas.bench.measuring import doctor

        return doctor.checks()
    from dlas.axes.hardware import diagnosis
    from dlas.sweep.study import parts

    profile = parts.find("hardware", device).fixed.get("profile")
    if profile is None:
        raise InputError(f"{device!r} has no profile, and only boards with one can be checked")
    return list(diagnosis.checks(profile))


def examine_hardware(name: str) -> list[SystemCheck]:
    """Return the checks of what a part of the axis ``hardware`` measures on: a board, or this machine."""
    from dlas.sweep.study import parts

    profile = parts.find("hardware", name).fixed.get("profile")
    return examine(name if profile is not None and profile.driver == "rpc" else None)
