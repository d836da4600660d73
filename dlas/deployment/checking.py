"""Check every path of a deployed flexible network: run in a process of its own by ``dlas deploy --paths``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from dlas.deployment.loading import load
from dlas.deployment.routing import DeployedPaths
from dlas.deployment.run import Refused, check_outputs

IMAGES = "images"


def check(folder: Path, expected: Path, tolerance: float) -> None:
    """Compare the outputs of every function of a library with those of its network.

    Parameters
    ----------
    folder : Path
        What ``dlas deploy --paths`` wrote.
    expected : Path
        An ``.npz`` file with ``images``, and the outputs for them by the name of the function.
    tolerance : float
        Largest accepted deviation, as a share of the largest output.

    Raises
    ------
    Refused
        Names the first path that differs by more.
    """
    network = load(folder)
    assert isinstance(network, DeployedPaths)
    with np.load(expected, allow_pickle=False) as arrays:
        images = arrays[IMAGES]
        for batch, functions in network.routes.functions.items():
            for path, function in functions.items():
                outputs = network.run_of(images, path, batch)
                try:
                    check_outputs(outputs, arrays[function], tolerance)
                except Refused as error:
                    raise Refused(f"path {path} with batch {batch} is {error}") from None


if __name__ == "__main__":
    try:
        check(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
    except Refused as error:
        sys.exit(str(error))
