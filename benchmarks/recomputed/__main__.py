"""Write recomputed numbers into READMEs: ``python -m benchmarks.recomputed STUDY...``.

``front-page`` is the README of the whole.
"""

from __future__ import annotations

import sys

from benchmarks.recomputed.markdown import agrees, claims, replaced, tables
from benchmarks.recomputed.studies import readme, recompute


def main(studies: list[str]) -> None:
    """Rewrite the cells and numbers that say something else than the rows, with as many digits as before."""
    for study in studies:
        path = readme(study)
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
