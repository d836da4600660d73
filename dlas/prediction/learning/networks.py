"""One network in the settings that a predictor was fitted to: made, but neither built nor measured."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from dlas.analysis.importing.values import option_values
from dlas.errors import InputError, listed
from dlas.prediction.learning.stored import ANY, SettingRecord, StoredPredictor
from dlas.stack import INFERENCE
from dlas.sweep.engine.planned import Examples
from dlas.sweep.engine.session import Session
from dlas.sweep.rows.labels import label
from dlas.sweep.rows.machines import machine_id, machine_name
from dlas.sweep.rows.results import Row
from dlas.sweep.rows.schema import Device
from dlas.sweep.study.networks import NamedNetwork, named_network
from dlas.sweep.study.parts import LIBRARY
from dlas.sweep.study.point import Choice, Point
from dlas.sweep.study.selecting import select_points
from dlas.sweep.study.study import Study

if TYPE_CHECKING:
    from dlas.sweep.study.networks import Network

HERE = "local_cpu"
"""The hardware where nobody names another."""


@dataclass(frozen=True)
class NetworkOptions:
    """How a network is to be predicted; what is left out follows from the network and the predictor."""

    batch: int | Sequence[int] = ()
    """By default 1, or the batch that the network is fixed to; of training steps the least that was fitted.
    """
    size: int | None = None
    """Height and width of images."""
    threads: int | None = None
    compiler: str | None = None
    """Its label in rows, or its name alone."""
    hardware: str | Mapping[str, Any] | None = None
    """The part whose programs tell the kernels, by default this machine's processors."""

    @property
    def batches(self) -> tuple[int, ...]:
        """The batch sizes that are asked for, none for the usual one."""
        return (self.batch,) if isinstance(self.batch, int) else tuple(self.batch)

    def check(self) -> None:
        """Refuse batches and sizes below 1.

        Raises
        ------
        InputError
        """
        for name, values in (("batch", self.batches), ("size", () if self.size is None else (self.size,))):
            if any(value < 1 for value in values):
                raise InputError(f"`{name}={min(values)}`: a whole number above 0 is expected")

    def refuse_any(self) -> None:
        """Refuse whatever was asked, because studies and rows say it themselves.

        Raises
        ------
        InputError
        """
        if given := [name for name, value in vars(self).items() if value not in ((), None)]:
            raise InputError(
                f"`{given[0]}=` is for one network; studies and rows say it themselves, and `where=` chooses "
                "among their points"
            )

    def settings(self, fitted: Sequence[SettingRecord]) -> list[SettingRecord]:
        """Return the settings with the threads and the compiler that are asked for.

        Raises
        ------
        InputError
            If there is none; it lists those that were fitted.
        """
        chosen = list(fitted)
        wanted = {"threads": None if self.threads is None else str(self.threads), "compiler": self.compiler}
        for column, value in wanted.items():
            if value is None:
                continue
            known = sorted({each.setting[column] for each in chosen})
            chosen = [
                each for each in chosen if value in (each.setting[column], _split(each.setting[column])[0])
            ]
            if not chosen:
                raise InputError(f"{column} {value!r} was never fitted (fitted: {listed(known)})")
        return chosen


def planned_network(
    known: StoredPredictor,
    network: Network,
    asked: NetworkOptions,
    session: Session,
    where: Sequence[str] = (),
) -> tuple[Examples, str]:
    """Return a network's points, one for each setting of a predictor and batch size, and what it is called.

    A setting of another machine is warned of, and its points have that machine.

    Parameters
    ----------
    known : StoredPredictor
        The predictor.
    network
        As for :func:`dlas.sweep.study.networks.named_network`.
    where : sequence of str
        Filters of its points.

    Raises
    ------
    InputError
        If the network cannot be read, a setting has a compiler or an algorithm that is no part here, or no
        point can be made.
    """
    asked.check()
    settings = asked.settings(known.record.settings)
    with named_network(network, asked.size, session.root) as named:
        batches = [_batches(named, each, asked.batches) for each in settings]

        def fitting(point: Point) -> list[SettingRecord]:
            pairs = zip(settings, batches, strict=True)
            return [each for each, own in pairs if point.batch in own and _fits(point, each)]

        study = _study(named, settings, sorted(set(itertools.chain(*batches))), asked.hardware or HERE)
        points = [point for point in select_points(study, where) if fitting(point)]
        if not points:
            raise InputError(_none(settings, where))
        made = session.plan(study, points, kernels=known.part.level == "kernel").required()
    found = Examples(failed=made.failed)
    for each in made.points:
        row = each.row
        for setting in fitting(Point.of(asdict(row))):
            model = row.model if named.lasting else {"name": named.label}
            own = replace(row, model=model, device=_device(setting, row))
            found.points.append(replace(each, row=own))
    for remark in dict.fromkeys(_remarks(settings, made.points[0].row)):
        session.display.warn(remark)
    return found, named.label


def _none(settings: Sequence[SettingRecord], where: Sequence[str]) -> str:
    """Return why there is no point to predict."""
    if where:
        return f"no point in a setting of the predictor matches {' and '.join(where)}"
    told = [", ".join(filter(None, each.setting.values())) for each in settings]
    return f"the network has no point in a setting of the predictor (fitted: {listed(told)})"


def _study(
    network: NamedNetwork,
    settings: Sequence[SettingRecord],
    batches: Sequence[int],
    hardware: str | Mapping[str, Any],
) -> Study:
    """Return a study with the parts of all settings, and more: they are crossed."""

    def values(column: str) -> list[str]:
        return list(dict.fromkeys(each.setting[column] for each in settings))

    algorithms = [_part("algorithm", name) for name in values("algorithm") if name != LIBRARY]
    return Study(
        axes={
            "dataset": network.dataset,
            "model": network.part,
            "compiler": [_part("compiler", name) for name in values("compiler")],
            "algorithm": algorithms or None,
            "hardware": hardware,
            "batch": list(batches),
            "task": values("task"),
        },
        name="predict",
    )


def _part(axis: str, text: str) -> dict[str, Any]:
    """Return the entry of a study for a part that rows label ``metaschedule(trials=64)``.

    Raises
    ------
    InputError
        If there is no such part here, or it does not take these options.
    """
    name, options = _split(text)
    for values in itertools.product(*map(option_values, options.values())):
        given = dict(zip(options, values, strict=True))
        with suppress(InputError):
            if label(Choice.checked(axis, name, given).content()) == text:
                return {"name": name, **given}
    raise InputError(f"the predictor was fitted to the {axis} {text!r}, and there is no such part here")


def _split(text: str) -> tuple[str, dict[str, str]]:
    """Return the name and the options in a part's label."""
    name, _, options = text.removesuffix(")").partition("(")
    pairs = (option.partition("=") for option in options.split(", ") if option)
    return name, {key: value for key, _, value in pairs}


def _batches(network: NamedNetwork, setting: SettingRecord, batches: Sequence[int]) -> Sequence[int]:
    """Return the batch sizes to predict in a setting."""
    if batches:
        return batches
    return (network.batch or 1,) if setting.setting["task"] == INFERENCE else (setting.batches[0],)


def _fits(point: Point, setting: SettingRecord) -> bool:
    """Return whether a point has a setting's task, compiler and algorithm."""
    own = {
        "task": point.task,
        "compiler": label(point.compiler.content()),
        "algorithm": label(point.algorithm.content()),
    }
    return all(setting.setting[name] == value for name, value in own.items())


def _device(setting: SettingRecord, row: Row) -> Device:
    """Return the device of a setting: the row's, if that is the same, or what is known of another machine."""
    told = setting.setting
    device: dict[str, Any] = dict(row.device)
    if not _is_here(setting, row):
        known = {name: low for name, (low, high) in setting.facts.items() if low == high}
        device = {"machine": setting.machine, "machine_id": told["machine_id"], **known}
        device |= {"instance": told["instance"]} if told.get("instance") not in ("", ANY, None) else {}
    return cast(Device, {**device, **({"threads": int(told["threads"])} if told["threads"] else {})})


def _is_here(setting: SettingRecord, row: Row) -> bool:
    """Return whether a setting's device is a row's, whatever the number of threads."""
    instance = setting.setting.get("instance", "")
    same = instance in (row.device.get("instance", ""), ANY)
    return same and machine_id(row.device) == setting.setting["machine_id"]


def _remarks(settings: Sequence[SettingRecord], row: Row) -> Iterator[str]:
    """Yield what is to be said of settings of other machines than the row's."""
    here = f"{machine_name(row.device)} ({machine_id(row.device)})"
    for each in settings:
        if not _is_here(each, row):
            told = ", ".join(filter(None, (each.setting["machine_id"], each.setting.get("instance"))))
            yield (
                f"the predictor was fitted on {each.machine} ({told}), and this machine is {here}: "
                f"it predicts for the former, with the kernels that programs have here{_there(each, row)}"
            )


def _there(setting: SettingRecord, row: Row) -> str:
    """Return what gives the kernels of another machine, where its profile is known and another."""
    if setting.hardware in ("", row.hardware["name"]):
        return ""
    return f"; `hardware={setting.hardware}` gives those that they have there"
