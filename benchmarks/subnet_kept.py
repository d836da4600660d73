"""Winners of searches as they are kept: what was asked and estimated, beside the rows that were measured."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dlas.bench.store.records import Strict, read_model
from dlas.errors import InputError
from dlas.sweep.rows.files import complete_lines, results_file
from dlas.sweep.rows.results import FILE, Row

SEARCHES = "searches.json"
MOST_BYTES = 16 << 20


@dataclass(frozen=True)
class Outcome:
    """A winner and what was measured of it."""

    bound: float
    estimated: float
    high: float
    measured: float
    scaled: float
    """The most that it may take, what was estimated and the upper end of its interval, what was measured, and
    that divided by how much slower the reference was than in the rows; in s.
    """
    noisy: bool
    """Whether something else disturbed a measurement."""


class KeptWinner(Strict):
    """A winner of a search, and what its search estimated of it."""

    id: str
    reference: str
    """The point that was measured before it."""
    estimated: float
    high: float
    score: float
    before: float
    """What the reference took in the rows that the predictor was fitted to, in s."""


class KeptSearch(Strict):
    """What a search asked for and found, as far as the tables rest on it."""

    quantity: str
    bound: float
    estimators: dict[str, str]
    """SHA-256 of the files of each estimator and of what scores, by its name."""
    value: float
    score: float
    """What was estimated of the best, and its score."""
    winners: list[KeptWinner]


class KeptSearches(Strict):
    """The searches whose winners were measured, in the order of the rows."""

    searches: list[KeptSearch]


def keep(searches: Sequence[KeptSearch], lines: Sequence[bytes], folder: Path) -> None:
    """Write searches and rows where :func:`read_kept` finds them."""
    folder.mkdir(parents=True, exist_ok=True)
    text = KeptSearches(searches=list(searches)).model_dump_json(indent=1)
    (folder / SEARCHES).write_text(text + "\n", encoding="utf-8")
    (folder / FILE).write_bytes(b"".join(lines))


def read_kept(folder: Path) -> tuple[list[KeptSearch], list[Outcome]]:
    """Return the searches of a folder, and what was measured of their winners.

    Raises
    ------
    InputError
        If the rows are not those of the winners and their references, in their order.
    """
    searches = read_model(folder / SEARCHES, KeptSearches, MOST_BYTES).searches
    rows = [Row.parse(line) for line in complete_lines(results_file(folder))]
    winners = [(search, winner) for search in searches for winner in search.winners]
    named = [name for _, winner in winners for name in (winner.reference, winner.id)]
    if named != [row.id for row in rows]:
        raise InputError(
            f"{str(folder)!r}: its rows are not those of the winners in {SEARCHES}, in their order"
        )
    pairs = zip(winners, rows[::2], rows[1::2], strict=True)
    return searches, [outcome(*names, reference, row) for names, reference, row in pairs]


def outcome(search: KeptSearch, winner: KeptWinner, reference: Row, row: Row) -> Outcome:
    """Return what was measured of a winner, beside what was estimated."""
    now, value = seconds(reference, search.quantity), seconds(row, search.quantity)
    scaled, noisy = value * winner.before / now, bool(reference.noisy or row.noisy)
    return Outcome(search.bound, winner.estimated, winner.high, value, scaled, noisy)


def seconds(row: Row, quantity: str) -> float:
    """Return the median of a row's samples, or the shortest of them for ``latency_min_s``."""
    return (min if quantity == "latency_min_s" else statistics.median)(row.latency_s)
