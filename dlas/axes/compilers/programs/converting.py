"""Converters of ONNX graphs that are programs of other packages, run in processes of their own.

They crash on some graphs, and write beside the wanted files others that nobody reads.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from dlas.axes.compilers.programs.onnx_graph import type_of, write_graph
from dlas.errors import Unsupported
from dlas.stack import Network

CAUSES = re.compile(r"not support|no such|unexpected|fail|error|not exist", re.IGNORECASE)
"""What a converter's line says that tells why it ended."""
PLACE = re.compile(r"^(\[[\d:]+\]\s*)?(\S*:\d+:\s*)?")
"""Time and place in the sources, which come first in a line."""


def convert_graph(
    runtime: str, network: Network, batch: int, command: Sequence[str], wanted: Sequence[str], folder: Path
) -> None:
    """Write a network's ONNX graph for inputs [batch, c, h, w], run its converter, and keep what it wrote.

    Parameters
    ----------
    runtime : str
        For messages.
    command : sequence of str
        Reads ``model.onnx`` in the current folder.
    wanted : sequence of str
        The files that it writes and that are kept in ``folder``.

    Raises
    ------
    Unsupported
        If the network is not in float32, or the converter does not write all files.
    """
    kind = type_of(network)
    if kind != "float32":
        raise Unsupported(f"{runtime} computes in float32 here, and this network is in {kind}")
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        write_graph(network, batch, scratch)
        _convert(runtime, command, wanted, scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for name in wanted:
            shutil.copyfile(scratch / name, folder / name)


def _convert(runtime: str, command: Sequence[str], wanted: Sequence[str], folder: Path) -> None:
    """Run a converter in ``folder`` and write what it says into the log."""
    ended = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    print(ended.stdout, flush=True)
    if ended.returncode == -signal.SIGKILL:
        raise MemoryError(f"the converter to {runtime} was killed, as where memory runs out")
    if ended.returncode or not all((folder / name).is_file() for name in wanted):
        raise Unsupported(f"{runtime} does not convert this network: {_cause(ended)}")


def _cause(ended: subprocess.CompletedProcess[str]) -> str:
    """Return the first line that tells why a converter failed, or how it ended."""
    told = (line.strip() for line in ended.stdout.splitlines())
    line = next(filter(CAUSES.search, told), None)
    code = ended.returncode
    return PLACE.sub("", line) if line else f"died of signal {-code}" if code < 0 else f"exit code {code}"
