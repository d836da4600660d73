"""Whether this machine or a board is fit to measure on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlas.errors import InputError

if TYPE_CHECKING:
    from dlas.bench.measuring.doctor import SystemCheck

NOTHING_RUN = "it is simulated: nothing is built or run, and a law tells times and energies"


def examine(device: str | None = None) -> list[SystemCheck]:
    """Return the checks of this machine, of a board, of an engine of WebAssembly, or of a simulated device.

    Parameters
    ----------
    device : str, optional
        The profile of a board or of an engine.

    Raises
    ------
    InputError
        If there is no such profile, or it is of neither.
    """
    from dlas.bench.measuring import doctor

    if device is None:
        return doctor.checks()
    from dlas.axes.hardware import diagnosis, engine_diagnosis
    from dlas.axes.hardware.engines import WebAssemblyEngine
    from dlas.stack import SimulatedHardware
    from dlas.sweep.study import parts

    part = parts.find("hardware", device)
    if issubclass(part.cls, SimulatedHardware):
        return [doctor.SystemCheck("device", "warn", NOTHING_RUN, "name another device to measure anything")]
    if issubclass(part.cls, WebAssemblyEngine):
        return list(engine_diagnosis.checks(part.make({})))
    profile = part.fixed.get("profile")
    if profile is None:
        raise InputError(f"{device!r} has no profile, and only devices with one can be checked")
    return list(diagnosis.checks(profile))


def examine_hardware(name: str) -> list[SystemCheck]:
    """Return the checks of what a part of the axis ``hardware`` measures on: a board, or this machine."""
    from dlas.sweep.study import parts

    profile = parts.find("hardware", name).fixed.get("profile")
    return examine(name if profile is not None and profile.driver == "rpc" else None)
