"""Write recomputed numbers into READMEs: ``python -m benchmarks.recomputed STUDY...``.

``front-page`` is the README of the whole, ``docs/index.md`` a page of the documentation.  ``--count`` writes
nothing, and tells how many numbers of the studies, or of all, are recomputed, and how many are not and why;
it fits predictors, which takes minutes.
"""

from __future__ import annotations

import sys

from benchmarks.recomputed.coverage import coverage, in_words
from benchmarks.recomputed.markdown import agrees, claims, replaced, tables
from benchmarks.recomputed.studies import FRONT_PAGE, pages, readme, recompute, studies


def main(words: list[str]) -> None:
    """Write what is asked for, or count."""
    if words[:1] == ["--count"]:
        print(in_words([coverage(study) for study in words[1:] or [FRONT_PAGE, *studies()]]))
    else:
        rewrite(words)


def rewrite(names: list[str]) -> None:
    """Rewrite the cells and numbers that say something else than the rows, with as many digits as before."""
    for study in names:
        path = readme(study)
        if not path.is_file():
            there = ", ".join([FRONT_PAGE, *studies(), *pages()])
            sys.exit(f"{study!r} is no study or page; there are: {there}")
        text = path.read_text()
        lines = text.split("\n")
        for table in tables(text):
            if not table.function:
                continue
            for place, cells in enumerate(table.rows, table.line + 1):
                written = lines[place].strip().strip("|").split("|")
                found = recompute(study, table.function, cells)
                for position, column in enumerate(cells):
                    if column in found and not agrees(cells[column], found[column]):
                        written[position] = f" {replaced(cells[column], found[column])} "
                lines[place] = "|" + "|".join(written) + "|"
        for claim in claims(text):
            value = recompute(study, claim.function, *claim.words)
            lines = [line.replace(claim.text, claim.rewritten(value)) for line in lines]
        path.write_text("\n".join(lines))


if __name__ == "__main__":
    main(sys.argv[1:])
