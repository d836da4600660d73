"""Tables and numbers of a README with the comments that say where they come from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

NUMBER = re.compile(r"(?<![\w.,-])[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?![\w,]*\d)")
"""A number as it is written: ``1,595``, ``+0.42`` or ``99.56``; not the digits in a name."""
SOURCE = re.compile(r"^<!-- (?:(?P<sign>=|measured:) (?P<source>.+?)|(?P<none>nothing measured)) -->$")
CLAIM = re.compile(r"(?P<number>[-+]?\d[\d,]*(?:\.\d+)?)<!-- = (?P<name>[\w.]+)(?:\((?P<words>[^)]*)\))? -->")
RULE = re.compile(r"^\|(?: *:?-+:? *\|)+$")

Value = float | str | Sequence[float] | None
"""A recomputed cell: its number, its text, the numbers in it in their order, or None for an empty cell."""


@dataclass(frozen=True)
class Table:
    """A table of a README."""

    line: int
    """The number of the line of its header."""
    function: str
    """The function that recomputes it, empty where the rows are not kept."""
    command: str
    """The command that measured it where the rows are not kept."""
    told: bool
    """Whether a comment says where its numbers come from."""
    rows: Sequence[Mapping[str, str]]
    """The cells of each line by their column; an empty label is that of the line above."""


@dataclass(frozen=True)
class Claim:
    """A number in a sentence, and the function that recomputes it."""

    text: str
    """The number with its comment."""
    written: str
    function: str
    words: tuple[str, ...]

    def rewritten(self, value: float) -> str:
        """Return the text with another number."""
        return _written(self.written, value) + self.text[len(self.written) :]


def tables(text: str) -> Iterator[Table]:
    """Yield the tables of a README; one without a comment has neither a function nor a command."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not RULE.match(line):
            continue
        above = next((each for each in reversed(lines[: number - 1]) if each.strip()), "")
        found = SOURCE.match(above)
        source = {found["sign"]: found["source"]} if found and found["sign"] else {}
        body = []
        for each in lines[number + 1 :]:
            if not each.startswith("|"):
                break
            body.append(_cells(each))
        header = _distinct(_cells(lines[number - 1]))
        given = source.get("=", ""), source.get("measured:", ""), found is not None
        yield Table(number, *given, _labelled(header, body))


def claims(text: str) -> Iterator[Claim]:
    """Yield the numbers in sentences that a comment follows."""
    for found in CLAIM.finditer(text):
        words = tuple(word.strip() for word in (found["words"] or "").split(",") if word.strip())
        yield Claim(found[0], found["number"], found["name"], words)


def numbers(cell: str) -> list[str]:
    """Return the numbers of a cell."""
    return NUMBER.findall(cell)


def agrees(cell: str, value: Value) -> bool:
    """Return whether a cell says what was recomputed, to the digits that it has."""
    if value is None:
        return not numbers(cell)
    if isinstance(value, str):
        return cell == value
    written, values = numbers(cell), _in_order(value)
    return len(written) == len(values) and all(map(rounds, written, values))


def rounds(written: str, value: float) -> bool:
    """Return whether a number, rounded to the digits that are written, is what is written."""
    digits = len(written.partition(".")[2])
    return abs(float(written.replace(",", "")) - value) <= 0.5 * 0.1**digits * (1 + 1e-6)


def replaced(cell: str, value: Value) -> str:
    """Return a cell with the recomputed numbers in place of its own, with as many digits."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    values = iter(_in_order(value))
    if not numbers(cell):
        return f"{next(values):.2f}"
    return NUMBER.sub(lambda found: _written(found[0], next(values)), cell)


def _in_order(value: float | Sequence[float]) -> Sequence[float]:
    return value if isinstance(value, Sequence) else [value]


def _written(before: str, value: float) -> str:
    digits = len(before.partition(".")[2])
    sign = "+" if before.startswith(("+", "-")) else ""
    return f"{value:{sign},.{digits}f}"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _distinct(header: Sequence[str]) -> list[str]:
    """Return the columns; the second ``batch 64`` is ``batch 64 (2)``."""
    seen: dict[str, int] = {}
    names = []
    for name in header:
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return names


def _labelled(header: Sequence[str], body: Sequence[Sequence[str]]) -> list[dict[str, str]]:
    """Return the lines by column, the empty cells at the left of a line filled from the line above."""
    rows: list[dict[str, str]] = []
    for cells in body:
        row = dict(zip(header, cells, strict=True))
        for name in header:
            if row[name] or not rows:
                break
            row[name] = rows[-1][name]
        rows.append(row)
    return rows
