"""ncnn's networks as programs.

The packages are imported where they are used, since they are optional.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from dlas.axes.compilers.programs.onnx_graph import MODEL
from dlas.errors import Unsupported
from dlas.stack import Images, Program

PARAMETERS, WEIGHTS = "model.ncnn.param", "model.ncnn.bin"
"""A build's files: the layers, and their weights."""
LAYERS_FROM = 2
"""Lines of ``PARAMETERS`` before the first layer: a magic number, and counts."""
FLOAT32 = {
    **dict.fromkeys(("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic"), False),
    **dict.fromkeys(("use_bf16_packed", "use_bf16_storage"), False),
    "use_vulkan_compute": False,
}
"""Options without which ncnn stores or adds numbers in 16 bits on processors that can, or uses a GPU."""


class NcnnProgram(Program):
    """A network in ncnn, which has no batches: it computes one image after the other.

    Parameters
    ----------
    folder : Path
        With :data:`PARAMETERS` and :data:`WEIGHTS`.
    threads : int
        Of one layer; layers run one after the other.
    """

    def __init__(self, folder: Path, threads: int) -> None:
        ncnn = imported()
        self.net = ncnn.Net()
        """The ``ncnn.Net``."""
        for name, value in {**FLOAT32, "num_threads": threads}.items():
            setattr(self.net.opt, name, value)
        for load, path in ((self.net.load_param, PARAMETERS), (self.net.load_model, WEIGHTS)):
            if load(str(folder / path)) != 0:
                raise RuntimeError(f"ncnn does not read {folder / path}")
        # Memory is kept from image to image, as in ncnn's own benchmark. Nothing that is allocated in them
        # may outlive the pools: weights are loaded before, and outputs are copied.
        self._pools = ncnn.UnlockedPoolAllocator(), ncnn.PoolAllocator()
        self.net.opt.blob_allocator, self.net.opt.workspace_allocator = self._pools

    def bind(self, images: Images) -> Callable[[], None]:
        """Return a function that runs one inference on ``images``, which ncnn holds in its own layout."""
        mats = self._held(images)

        def once() -> None:
            for mat in mats:
                self._infer(mat)

        return once

    def run(self, images: Images) -> npt.NDArray[np.float32]:
        """Return the outputs [n, classes] for ``images`` [n, c, h, w]."""
        outputs = [np.array(self._infer(mat)).reshape(-1) for mat in self._held(images)]
        return np.stack(outputs)

    def _held(self, images: Images) -> list[Any]:
        """Return each image as an ``ncnn.Mat`` with memory of its own, its channels aligned."""
        mat = imported().Mat
        return [mat(np.ascontiguousarray(image)).clone() for image in images]

    def _infer(self, image: Any) -> Any:
        """Return the ``ncnn.Mat`` of the network's output for one image."""
        extractor = self.net.create_extractor()
        extractor.input(self.net.input_names()[0], image)
        code, output = extractor.extract(self.net.output_names()[0])
        if code != 0:
            raise RuntimeError(f"ncnn cannot run this network: error {code}")
        return output


def imported() -> ModuleType:
    """Return the package ``ncnn``."""
    return importlib.import_module("ncnn")


def converter() -> list[str]:
    """Return the command that converts ``model.onnx`` in the current folder, weights in 32 bits.

    pnnx is a program inside its package, whose import would bring torch.
    """
    found = importlib.util.find_spec("pnnx")
    places = list(found.submodule_search_locations or ()) if found else []
    if not places:
        raise Unsupported("the package pnnx, which converts for ncnn, has no files")
    return [str(Path(places[0], "pnnx")), MODEL, "fp16=0"]


def refuse_unknown_layers(parameters: Path) -> None:
    """Raise an error that names the operators of a converted network that ncnn has no layer for.

    The converter leaves them as they are, and ncnn would not read the file.

    Raises
    ------
    Unsupported
    """
    lines = parameters.read_text().splitlines()[LAYERS_FROM:]
    kinds = sorted({line.split()[0] for line in lines if line.strip()})
    unknown = [kind for kind in kinds if imported().create_layer(kind) is None]
    if unknown:
        raise Unsupported(f"ncnn has no layer for {', '.join(unknown)}")
