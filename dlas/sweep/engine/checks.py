"""What is refused before a sweep: rows of another machine, training on one image, counts without valgrind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlas.bench.measuring import callgrind
from dlas.errors import InputError
from dlas.stack import TRAINING, Data, MeasureSettings
from dlas.sweep.rows.columns import INSTANCE
from dlas.sweep.rows.files import FILE
from dlas.sweep.rows.labels import rows
from dlas.sweep.rows.machines import differences, machine_id, machine_name
from dlas.sweep.rows.results import read_rows
from dlas.sweep.study.point import Choice, Point

ADVICE = (
    "Give another `out=`; or go on in this folder with `anyway=True`: rows of two machines are not compared "
    "with each other, and where a point is measured again here, its row from there no longer counts."
)
Which = tuple[str | None, str | None]
"""A machine's fingerprint, and of machines alike which one it is."""


@dataclass
class MachineRows:
    """The rows of a folder that were measured on one machine with one profile."""

    hardware: str
    """Name of the profile."""
    device: Mapping[str, Any]
    """As :class:`dlas.sweep.rows.schema.Device`."""
    count: int = 0
    """Number of rows."""


def check_countable(settings: MeasureSettings) -> None:
    """Refuse to count instructions where valgrind is not installed.

    Raises
    ------
    InputError
    """
    if settings.callgrind and (reason := callgrind.missing()):
        raise InputError(f"`callgrind = true` in [measure] counts instructions, but {reason}")


def devices(hardware: Iterable[Choice]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the devices that can be used here, each with the name of its hardware."""
    for choice in hardware:
        device = choice.make("hardware")
        if not device.unsupported():
            yield choice.name, device.describe()


def check_machine(
    used: Iterable[tuple[str, Mapping[str, Any]]], folder: Path, anyway: bool = False, advice: str = ADVICE
) -> list[str]:
    """Refuse a folder with rows of the same hardware that another machine measured, or another instance.

    Parameters
    ----------
    used : iterable of (str, mapping)
        What is to be measured on, as :func:`devices` yields it.
    folder : Path
        Where the rows are to be written; it need not exist.
    anyway : bool
        Tell of such rows instead of refusing them.
    advice : str
        What to do instead, the last line of the refusal.

    Returns
    -------
    list of str
        What to tell before the sweep: rows of other machines, and rows of earlier versions that lack
        facts of their machine, so that it is unknown whether it is this one.

    Raises
    ------
    InputError
        If there are such rows; quotes both machines and what they differ in.
    """
    here: dict[str, dict[Which, Mapping[str, Any]]] = {}
    for name, described in used:
        here.setdefault(name, {})[_which(described)] = described
    others: list[str] = []
    remarks: list[str] = []
    for measured in _measured(folder):
        ours = here.get(measured.hardware, {})
        if not ours or _which(measured.device) in ours:
            continue
        differing = ((own, _differences(measured.device, own)) for own in ours.values())
        own, differ = min(differing, key=lambda pair: len(pair[1]))
        (others if differ else remarks).append(_told(folder, measured, own, differ))
    if others and not anyway:
        raise InputError("\n".join([*others, advice]))
    return [*others, *remarks]


def _measured(folder: Path) -> Iterator[MachineRows]:
    """Yield the machines of a folder's rows, those with most rows first."""
    if not any(folder.glob(f"{FILE}*")):
        return
    by_machine: dict[tuple[str, Which], MachineRows] = {}
    for row in read_rows(folder):
        name = str(row.hardware.get("name"))
        if machine_id(row.device):
            by_machine.setdefault((name, _which(row.device)), MachineRows(name, row.device)).count += 1
    yield from sorted(by_machine.values(), key=lambda measured: -measured.count)


def _which(device: Mapping[str, Any]) -> Which:
    """Return which machine a device is, of machines alike which one."""
    return machine_id(device), device.get(INSTANCE)


def _differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Return in what two machines differ, of what is known of both, in words."""
    ours, theirs = here.get(INSTANCE), there.get(INSTANCE)
    apart = [f"{INSTANCE} ({theirs} there, {ours} here)"] if ours and theirs and ours != theirs else []
    return [*differences(there, here), *apart]


def _told(folder: Path, measured: MachineRows, own: Mapping[str, Any], differ: list[str]) -> str:
    there, here = (f"{machine_name(device)} ({machine_id(device)})" for device in (measured.device, own))
    count = f"{str(folder)!r} has {rows(measured.count)} of {measured.hardware}"
    if differ:
        differ_in = ", ".join(differ)
        return f"{count} from another machine: {there}. This machine is {here}. They differ in {differ_in}."
    return (
        f"{count} from {there}, of which facts are unknown: whether it is this machine, {here}, is unknown, "
        "and its rows are not compared with those of this one."
    )


def check_trainable(points: Iterable[Point]) -> None:
    """Refuse points that train a network on one image, where its batch norms need two.

    Raises
    ------
    InputError
    """
    tried = (point for point in points if point.task == TRAINING and point.batch == 1)
    able = (point for point in tried if not point.unsupported())
    loaded: dict[Choice, Data | None] = {}
    for dataset, model in dict.fromkeys((point.dataset, point.model) for point in able):
        if dataset not in loaded:
            loaded[dataset] = _data(dataset)
        data = loaded[dataset]
        if data is not None and (reason := model.make("model").untrainable(data, batch=1)):
            raise InputError(f"model {model}: {reason}")


def _data(dataset: Choice) -> Data | None:
    """Return a data set; None if it cannot be read, of which its rows tell."""
    try:
        return dataset.make("dataset").load()
    except Exception:  # whatever it raises
        return None
