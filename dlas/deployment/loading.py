"""Load deployed networks in Python: ``dlas.load``."""

from __future__ import annotations

import importlib
import os
from functools import partial
from pathlib import Path

from dlas.deployment import run
from dlas.deployment.routing import ROUTES, DeployedPaths, Routes
from dlas.deployment.run import DeployedNetwork, Refused

RUNTIMES = ("onnxruntime", "openvino", "torch", "tvm")


def load(folder: str | os.PathLike[str], threads: int | None = None) -> DeployedNetwork:
    """Return a deployed network: call it on images.

    Nothing is imported from the folder but, for TVM, its compiled library.

    Parameters
    ----------
    folder : path
        What ``dlas deploy --to`` wrote.
    threads : int, optional
        By default as many as it was measured with.  TVM and torch have one number for all of the process.

    Returns
    -------
    DeployedNetwork
        Maps images, float32 [n, c, h, w], to outputs [n, classes].  A flexible network is a
        :class:`dlas.deployment.routing.DeployedPaths`, whose ``run`` takes a path or a policy.

    Raises
    ------
    Refused
        If a file has changed, the processor lacks an extension, or the runtime is not installed; or
        routes are of another library.
    """
    description = run.check(Path(folder))
    if description["runtime"] not in RUNTIMES:
        raise Refused(f"{str(folder)!r} is for {description['runtime']!r}, not one of {', '.join(RUNTIMES)}")
    routed = (Path(folder) / ROUTES).is_file()
    network = partial(DeployedPaths, routes=Routes.read(Path(folder))) if routed else DeployedNetwork
    runtime = importlib.import_module(f"dlas.deployment.runtimes.{description['runtime']}")
    return run.opened(Path(folder), description, runtime.Program, threads, network)
