"""A page of very many rows shows some of their networks: it has to be written in minutes, and to open."""

from __future__ import annotations

import math

import pandas as pd

from dlas.face.spelling import spelled
from dlas.sweep.rows.labels import rows

MOST_ROWS = 12_000
MOST_NETWORKS = 500
"""Most datasets with a model; those of sampled studies and of imported tables are thousands."""
NETWORK = ["dataset", "model"]


def fewer(frame: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return all rows, or of very many those of networks that are spread evenly, and what is left out.

    All rows of a network are kept or left out together, so that points which differ in anything
    else are compared on the page as they are by the other commands.

    Parameters
    ----------
    frame : DataFrame
        What :func:`dlas.sweep.rows.frame.read` returned.

    Returns
    -------
    frame : DataFrame
    left_out : str
        A sentence; empty where nothing is.
    """
    networks = frame.groupby(NETWORK, dropna=False, sort=False).ngroup()
    count = networks.nunique()
    every = max(math.ceil(count / MOST_NETWORKS), math.ceil(len(frame) / MOST_ROWS))
    # A study of a few networks is shown as a whole, however many its rows are.
    if every <= 1 or count < every:
        return frame, ""
    kept = frame[networks % every == 0]
    return kept, (
        f"Of {rows(len(frame))} of {count:,} networks this page shows {len(kept):,}: those of one network in "
        f"{every}; {spelled('`where=` chooses others')}."
    )
