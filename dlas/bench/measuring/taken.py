"""What a measurement has taken so far: its slices, what they tell, and how a later start goes on."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from dlas.bench.measuring import disturbance
from dlas.bench.measuring.disturbance import LIMITS, UNSTABLE
from dlas.bench.measuring.observers import sentinel
from dlas.bench.measuring.observers.observer import Slice
from dlas.bench.measuring.observers.watch import disturbances, fields
from dlas.stack import MeasureSettings

RETRIES_IN_ALL = 6
"""How often slices are measured again in one measurement: lasting noise is not waited out."""
FEWEST_SLICES = 2
"""Slices whose medians can be compared: with fewer, nothing tells whether times are stable."""
OUTERMOST = 20
"""One in so many slices, at either end, does not make a measurement unstable."""


@dataclass
class Taken:
    """The slices of a measurement, also of several starts: a pause between two is like that of a turn."""

    attempts: list[Slice] = field(default_factory=list)
    """All slices so far, those that were measured again too."""
    chosen: list[int] = field(default_factory=list)
    """Which of them counts, of each turn."""
    first_run_s: float | None = None
    """Seconds of the first run, of the first start."""
    active_s: float = 0.0
    """Seconds of the slices, without those of first run and warm-up."""
    retries_left: int = RETRIES_IN_ALL
    own_clock: bool = False
    """Whether the device's own clock timed the samples."""

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Self:
        """Return what :meth:`content` told, or nothing taken for nothing."""
        attempts = [Slice(**each) for each in content.get("attempts", ())]
        return cls(**{**content, "attempts": attempts})

    def content(self) -> dict[str, Any]:
        """Return it all, JSON-able."""
        return asdict(self)

    @property
    def slices(self) -> list[Slice]:
        """The slices that count, one a turn."""
        return [self.attempts[number] for number in self.chosen]

    @property
    def samples(self) -> int:
        """Number of samples in them."""
        return sum(len(piece.samples) for piece in self.slices)

    def suffices(self, settings: MeasureSettings) -> bool:
        """Return whether the times so far are a result.

        They are with as many samples as a measurement takes however long that is, in slices that
        can be compared and are not so far apart that the times are unstable.
        """
        slices = self.slices
        fewest = min(FEWEST_SLICES, settings.slices, settings.repeats)
        enough = len(slices) >= fewest and self.samples >= min(settings.minimum, settings.repeats)
        return enough and instability(slices)[0] < 1

    def fields(self) -> dict[str, Any]:
        """Return the fields of a row, but for what ended the measurement.

        Returns
        -------
        dict
            The fields of each observer in :data:`dlas.bench.measuring.observers.watch.OBSERVERS`;
            ``slice_samples``, ``first_run_s``, ``noisy``, ``noisy_reason``, ``unstable``,
            ``unstable_reason``, ``instability`` (see :func:`instability`), ``active_s``.
        """
        slices = self.slices
        found = fields(slices)
        if self.own_clock:
            found |= {"cpu_s": None, "page_faults": None}  # this process only starts the runs, and waits
        reason = noise(slices, self.attempts)
        apart, unstable_reason = instability(slices)
        return {
            **found,
            "slice_samples": [len(piece.samples) for piece in slices],
            "first_run_s": self.first_run_s,
            "noisy": reason is not None,
            "noisy_reason": reason,
            "unstable": apart >= 1,
            "unstable_reason": unstable_reason if apart >= 1 else None,
            "instability": apart,
            "active_s": self.active_s,
        }


@dataclass
class Turn:
    """A program's turns on its device, with what is kept of them: called, it waits for the next one.

    Parameters
    ----------
    wait : callable
        Blocks until the device is this program's.
    keep : callable
        Stores what has been taken, after each slice.
    """

    wait: Callable[[], None]
    keep: Callable[[Taken], None]
    taken: Taken = field(default_factory=Taken)
    """What an earlier start has taken; it is added to."""

    def __call__(self) -> None:
        """Wait."""
        self.wait()


def noise(slices: Sequence[Slice], attempts: Sequence[Slice]) -> str | None:
    """Return why the slices together are noisy, or None where they are not.

    Beside each slice's own disturbances, compared with all ``attempts`` at slices, this detects
    slices whose medians disagree.
    """
    scores = [disturbance.worst(disturbances(piece, attempts)) for piece in slices]
    noisy = [(score, reason) for score, reason in scores if score > 1]
    if noisy:
        return f"{len(noisy)} of {len(slices)} slices disturbed: {max(noisy)[1]}"
    medians = [statistics.median(piece.samples) for piece in slices if piece.samples]
    apart = max(medians) / min(medians) - 1 if min(medians, default=0) > 0 else 0.0
    if apart > LIMITS["spread"]:
        return f"medians of the slices are {apart:.0%} apart"
    return None


def instability(slices: Sequence[Slice]) -> tuple[float, str]:
    """Return how far slices are apart, as a share of what makes a measurement unstable, and by what.

    It is the larger share of two: the factor between the medians of slices, and between
    runs of the sentinel, each over its limit in :data:`dlas.bench.measuring.disturbance.UNSTABLE`.  Of many,
    the outermost twentieth at either end does not count: a few of forty say nothing against their median.
    """
    medians = [statistics.median(piece.samples) for piece in slices if piece.samples]
    found = {
        "the medians of its slices": ("medians", medians),
        "runs of the sentinel": ("sentinel", sentinel.runs(slices)),
    }
    scores = []
    for what, (name, seconds) in found.items():
        if not seconds:
            continue
        outermost = len(seconds) // OUTERMOST
        least, most = sorted(seconds)[outermost], sorted(seconds)[-1 - outermost]
        apart = most / least if least > 0 else 1.0
        factor = f"{apart:.1f}" if apart < 10 else f"{apart:.0f}"
        scores.append((apart / UNSTABLE[name], f"{what} differ by a factor of {factor}"))
    return max(scores, default=(0.0, ""))
