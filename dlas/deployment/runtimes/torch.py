"""An exported torch program, called as it is or compiled in its first inference."""

from __future__ import annotations

import json
import re
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
FILES = ("program.pt2",)
PLAIN = re.compile(
    r"[^/]+/(models/model\.json|data/sample_inputs/model\.pt"
    r"|data/weights/(weight_\d+|model_weights_config\.json)"
    r"|data/constants/(tensor_\d+|model_constants_config\.json)"
    r"|(\.data/)?(archive_format|archive_version|byteorder|version|serialization_id))"
)
"""Members of an exported program that are read without unpickling, as long as the sample inputs are empty."""


class TorchDeployment:
    """A loaded module.

    Parameters
    ----------
    folder : Path
    threads : int
        Of this process, for all of torch.
    options : dict
        ``channels_last``: how images and weights are stored; ``compile``: whether torch compiles it;
        ``inductor``: with which options of its compiler, or None.
    """

    def __init__(self, folder: Path, threads: int, options: dict[str, Any]) -> None:
        import torch

        check_plain(folder / FILES[0])
        torch.set_num_threads(threads)
        self._torch = torch
        self._format = torch.channels_last if options["channels_last"] else torch.contiguous_format
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the file's weights are read-only, and stay so
            module: Any = torch.export.load(folder / FILES[0]).module()
        module.to(memory_format=self._format)
        self._module = module
        if options["compile"]:
            self._module = torch.compile(module, dynamic=False, options=options.get("inductor"))

    def bind(self, images: Array) -> Callable[[], Any]:
        """Return a function that runs one inference on ``images``."""
        bound = self._torch.from_numpy(images).contiguous(memory_format=self._format)

        def once() -> Any:
            with self._torch.inference_mode():
                return self._module(bound)

        return once

    def run(self, images: Array) -> Array:
        """Return the outputs for ``images``."""
        return np.asarray(self.bind(images)().float())


Program = TorchDeployment
"""What ``run.py`` and :func:`dlas.load` open."""


def check_plain(path: Path) -> None:
    """Refuse an exported program of which `torch.export.load` would unpickle anything.

    Raises
    ------
    ValueError
        Names the member of the file.
    """
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name = member.filename
            pickled = name.endswith(".pt") and member.file_size > 0
            if name.endswith("_config.json"):
                entries = json.loads(archive.read(member))["config"].values()
                pickled = any(entry["use_pickle"] for entry in entries)
            if pickled or not PLAIN.fullmatch(name):
                raise ValueError(f"{path} holds more than a program and its tensors: {name}")
