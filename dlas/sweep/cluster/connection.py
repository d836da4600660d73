"""Joining a Ray cluster, or starting one on this machine."""

from __future__ import annotations

import importlib
import logging
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType

from dlas.bench.measuring.machine import Machine
from dlas.errors import InputError, one_line

LOCAL = "local"
"""Starts a cluster on this machine, which ends with its process."""
AUTO = "auto"
"""The cluster that this machine belongs to."""
ANSWER_S = 10.0
"""How long a cluster may take to answer."""
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Has all of a new cluster listen to this machine alone."""
TOKEN = {"RAY_AUTH_MODE": "token"}
"""Has all ask for Ray's token, unless the environment says otherwise."""
PREFIX = "dlas:"
"""What a resource is called by which a machine offers hardware: ``dlas:local_cpu``."""
HOW = (
    "machines offer hardware of a study as they join: ray start --head --node-ip-address=127.0.0.1 "
    "--resources='{\"dlas:local_cpu\": 1}'"
)
"""How a cluster is made."""


def ray() -> ModuleType:
    """Return Ray.

    Raises
    ------
    InputError
        If it is not installed.
    """
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise InputError(
            "a cluster needs Ray, which is not installed; install it by: pip install 'dlas[ray]'"
        ) from None


@contextmanager
def joined(address: str, hardware: Sequence[str] = ()) -> Iterator[None]:
    """Belong to the cluster at an address; what this process belongs to already stays as it is.

    Parameters
    ----------
    address : str
        ``host:port``; ``auto`` for the one that this machine belongs to; ``local`` for a new one.
    hardware : sequence of str
        What a new one offers.

    Raises
    ------
    InputError
        If there is none.
    """
    for name, value in {**TOKEN, **(LOOPBACK if address == LOCAL else {})}.items():
        os.environ.setdefault(name, value)  # Ray reads them when it is imported
    if ray().is_initialized():
        yield
        return
    _join(address, hardware)
    try:
        yield
    finally:
        ray().shutdown()


def _join(address: str, hardware: Sequence[str]) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR, "namespace": "dlas"}
    try:
        if address == LOCAL:
            cores = Machine().most_threads()
            offered = {PREFIX + name: 1 for name in hardware}
            ray().init("local", num_cpus=cores, resources=offered, include_dashboard=False, **quiet)
            return
        if address != AUTO:
            _try(address)  # Ray tries for minutes
        ray().init(address, **quiet)
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(
            f"no Ray cluster answers at {address!r}: {one_line(str(error))}; expected host:port of one, "
            f"'auto' or 'local'; {HOW}"
        ) from None


def _try(address: str) -> None:
    """Connect to an address and leave it.

    Raises
    ------
    OSError, ValueError
        If nothing listens there, or it is none.
    """
    host, colon, port = address.rpartition(":")
    if not colon:
        raise ValueError("it has no port")
    with socket.create_connection((host, int(port)), timeout=ANSWER_S):
        pass
