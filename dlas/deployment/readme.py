"""The README of a deployed folder."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dlas.stack import PART_AXES
from dlas.sweep.rows import intervals
from dlas.sweep.rows.labels import interval_ms, label
from dlas.sweep.rows.machines import machine_name
from dlas.sweep.rows.results import UNSTABLE, Row

WIDTH = 100
NEEDS = {
    "tvm": "It needs Linux, Python 3.11 or newer, and these packages alone: neither torch nor dlas.",
    "onnxruntime": "It needs Python 3.11 or newer and these packages alone.",
    "openvino": "It needs Python 3.11 or newer and these packages alone.",
    "torch": "It needs Python 3.11 or newer and torch, which the exported program runs in.",
}
NATIVE = "The library was compiled for {}; on a processor that lacks its instructions, `run.py` names them."
PATHS = """
    The library holds every path of a flexible network; `run.py` takes the legacy network's own, which the row
    is of. Where dlas is installed, paths can be chosen for each batch:

    ```python
    network = dlas.load("this folder")
    network.run(images, path="0110")                                    # 1 for each shallow phase
    network.run(images, policy="latency", deadline_s=0.01)              # the most accurate one in time
    network.run(images, policy="load", queue=waiting, deadline_s=0.1)   # for all that wait to be in time
    ```
"""
COMPILES = "The first inference compiles the program, for which torch needs a C++ compiler."
PLACES = {
    "library.so": "the compiled network",
    "parameters.safetensors": "its parameters, packed for the kernels",
    "program.json": "the order of the parameters; of one network also the layers that each kernel computes",
    "model.onnx": "the network as an ONNX graph",
    "program.pt2": "the network as `torch.export` wrote it",
    "program.py": "loads the program in its runtime",
    "run.py": "the command, and `load` for Python",
    "example.npy": "images of the test set",
    "example_outputs.npy": "the outputs of the network for them, before it was compiled",
    "deployed.json": "what `run.py` has to know",
    "routes.json": "the paths of the library, and what was measured of those that none is better than",
    "row.json": "the row that it came from, in full",
    "requirements.txt": "the packages that it was checked with",
    "SHA256SUMS": "hashes of all other files: `sha256sum -c SHA256SUMS`",
}


def readme(
    row: Row, description: Mapping[str, Any], prepared: str, files: Collection[str], notes: Sequence[str]
) -> str:
    """Return the text of a deployed folder's README.

    Parameters
    ----------
    description : mapping
        What ``deployed.json`` holds.
    prepared : str
        How the data set's images are prepared.
    files : collection of str
        Names of the other files in the folder.
    notes : sequence of str
        In what the build may differ from the one that was measured.
    """
    sections = {
        f"# {label(row.model)}, deployed": _summary(row, notes),
        "## Run it": _running(description),
        "## Images": _images(row, description, prepared),
        "## Outputs": _outputs(description),
        "## Where it came from": _origin(row),
        "## Files": _files(files),
    }
    return "\n\n".join(f"{title}\n\n{text}" for title, text in sections.items()) + "\n"


def _summary(row: Row, notes: Sequence[str]) -> str:
    text = (
        f"An inference of {_images_number(row.batch)} takes {_latency(row)} "
        f"with {_threads(row)} on {machine_name(row.device)}."
    )
    if row.status == UNSTABLE:
        text += f" That time is not reliable: {row.reason}."
    differing = [f"This build was not measured itself: {note}." for note in notes]
    return _filled(" ".join([text, *differing]))


def _running(description: Mapping[str, Any]) -> str:
    needs = NEEDS[description["runtime"]]
    if description["options"].get("compile"):
        needs += f" {COMPILES}"
    if description["extensions"]:
        needs += f" {NATIVE.format(description['processor'])}"
    commands = """
        In this folder:

        ```
        python3 -m venv venv
        venv/bin/pip install -r requirements.txt
        venv/bin/python run.py                                  # right on this machine?
        venv/bin/python run.py example.npy --out outputs.npy    # float32 [n, classes]
        venv/bin/python run.py example.npy --top 3 --time       # labels and latency
        ```
    """
    python = """
        In Python, with this folder on the path:

        ```python
        import run

        network = run.load("this folder")
        outputs = network(images)
        ```

        or, where dlas is installed, `dlas.load("this folder")`.
    """
    paths = [textwrap.dedent(PATHS).strip()] if description["options"].get("function") else []
    pieces = [_filled(needs), textwrap.dedent(commands).strip(), textwrap.dedent(python).strip(), *paths]
    return "\n\n".join(pieces)


def _images(row: Row, description: Mapping[str, Any], prepared: str) -> str:
    batch, *image = description["input"]
    shape = " x ".join(map(str, image))
    text = (
        f"float32 [n, c, h, w], an image {shape}, any n: {batch} at a time, the last ones filled up. "
        f"They must be prepared as the images of `{label(row.dataset)}`, with which the network was made:"
    )
    quoted = "\n".join(f"> {line}".rstrip() for line in prepared.splitlines())
    return f"{_filled(text)}\n\n{quoted}"


def _outputs(description: Mapping[str, Any]) -> str:
    labels = description["labels"]
    text = f"float32 [n, {len(labels)}]: a number for each class, the largest for the most likely one."
    if labels == [str(number) for number in range(len(labels))]:
        named = f"Classes have numbers, 0 to {len(labels) - 1}."
    else:
        shown = ", ".join(labels[:20]) + (f" and {len(labels) - 20} more" if len(labels) > 20 else "")
        named = f"In order: {shown}; all are in `deployed.json`."
    return _filled(f"{text} {named}")


def _origin(row: Row) -> str:
    facts = {axis: label(getattr(row, axis)) for axis in PART_AXES} | {
        "batch": row.batch,
        "seed": row.seed,
        "latency": _latency(row),
        "machine": f"{machine_name(row.device)}, {_threads(row)}",
    }
    if row.accuracy is not None:
        facts["accuracy"] = f"{row.accuracy:.2%} of the test images, before it was compiled"
    lines = [f"| {name} | {str(value).replace('|', '/')} |" for name, value in facts.items()]
    return "\n".join([f"Row `{row.id}` of the study `{row.study}`:", "", "| | |", "|---|---|", *lines])


def _files(files: Collection[str]) -> str:
    lines = [f"| `{name}` | {PLACES[name]} |" for name in PLACES if name in files]
    return "\n".join(["| file | holds |", "|---|---|", *lines])


def _latency(row: Row) -> str:
    interval = interval_ms(*intervals.median(row.latency_s))
    doubt = "; unstable, so no result" if row.status == UNSTABLE else ""
    return f"{interval} ms (median of {len(row.latency_s)} samples, 95 % interval{doubt})"


def _threads(row: Row) -> str:
    threads = row.device.get("threads", 1)
    return f"{threads} thread{'s' if threads != 1 else ''}"


def _images_number(batch: int) -> str:
    return "one image" if batch == 1 else f"{batch} images"


def _filled(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)
