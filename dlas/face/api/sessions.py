"""Sessions of functions that measure: on this machine, or on those of a cluster."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from dlas.errors import InputError
from dlas.sweep.engine.session import Session, Steps


def open_session(
    steps: Steps, ray: str | None, cache: str | os.PathLike[str] | None = None, **options: Any
) -> Session:
    """Return a session.

    Parameters
    ----------
    steps, cache, options
        As :meth:`Session.open` takes them.
    ray : str or None
        The address of a cluster; None for this machine.

    Raises
    ------
    InputError
        As for :meth:`Session.open`; if steps of a cluster are to run in this process, or Ray is missing.
    """
    if ray is None:
        return Session.open(steps, cache=cache, **options)
    if steps == "inline":
        raise InputError(f"ray = {ray!r} measures on other machines, and in_process asks for this process")
    from dlas.sweep.cluster.session import ClusterSession

    session = ClusterSession.open("spawned", cache=cache, **options)
    return replace(session, address=ray, shared_cache=None if cache is None else os.fspath(cache))
