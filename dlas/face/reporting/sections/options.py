"""What stands out although options keep it apart: settings and points compared by their parts' names."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dlas.analysis.options import paired_by_part, settings_by_part
from dlas.face.reporting.context import Context
from dlas.face.reporting.sections.highlights import Item, left_out
from dlas.sweep.rows.labels import times_as_fast

NAMES = ("model", "compression", "algorithm")


def options(context: Context) -> Iterator[Item]:
    """Yield what is compared apart because it differs in options only, by part with the best options."""
    without = left_out(context, range(len(context.points)))
    for found in settings_by_part(context.points):
        text = f"Settings that differ in options only are compared apart: {found.differing}."
        if found.best.points:
            fastest = found.best.points[0]
            text += f" The fastest of them: {context.name(fastest)}, {context.ms_text(fastest)} ms{without}."
        yield text, found.best.points[0] if found.best.points else None
    kinds = context.points["tuning"]
    pairs = paired_by_part(context.points, kinds == "untuned", kinds == "tuned", "compiler")
    if len(pairs):
        mean = float(np.exp(np.log(pairs["ratio"]).mean()))
        first, second = (int(pairs[name].iloc[0]) for name in ("first", "second"))
        named = " against ".join(context.name(line, NAMES) for line in (second, first))
        yield (
            "Points that were tuned and untuned with different options only, the best options of both: tuned "
            f"code is {times_as_fast(mean)}, geometric mean of {len(pairs)}, e.g. {named}{without}.",
            second,
        )
