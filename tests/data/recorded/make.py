"""Make the folders beside this file again: ``python tests/data/recorded/make.py [NAME ...]``.

They are what the commands of one version wrote; with another version they would be that one's.
"""

from __future__ import annotations

import _thread
import contextlib
import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors.numpy import save_file

import dlas

HERE = Path(__file__).resolve().parent
PHONE = HERE.parent / "ofa_note10.csv.xz"
EXPECTED = HERE / "expected.json"
PACKED = ("*.jsonl", "*.so", "predictor.json", "search.json", "row.json", "*.py", "README.md", "trees_*.json")
PREDICTORS: dict[str, dict[str, Any]] = {
    "additive": {"part": "additive"},
    "forest": {"part": "random_forest", "options": {"trees": 20}},
    "boosted": {"part": "boosted_kernels", "options": {"rounds": 20}},
}
SEARCH = [
    *("search", "studies/search.toml", "--estimator", "search/phone", "--maximise"),
    *("search/scores.safetensors", "--within", "latency_s=0.03", "--population", "16"),
    *("--generations", "60", "--winners", "0", "--out"),
]
DEVICE = [
    *("fit-device", "device", "--minutes", "10", "--hardware", "parts/steady.py:Steady"),
    *("--model", "parts/drawn_chain.py:DrawnChain"),
    *("--unseen", "{ name = 'parts/chain_net.py:ChainNet', depth = 6 }"),
]
EXPLORE = ["explore", "studies/explored.toml", "--share", "0.5", "--in-process", "--out"]


def sweep() -> dict[str, Any]:
    """Run a study, and interrupt it half way."""
    return halved("sweep", ["run", "studies/sweep.toml", "--out"], rows=4)


def own_parts() -> dict[str, Any]:
    """Run a study whose parts are all in files of the user's own, and interrupt it."""
    return halved("own_parts", ["run", "studies/own_parts.toml", "--out"], rows=4)


def explored() -> dict[str, Any]:
    """Explore a study, and interrupt it."""
    told = halved("explored", EXPLORE, rows=8)
    frame = dlas.read("whole/explored", predictions=True)
    return {**told, "statuses": frame["status"].value_counts().to_dict()}


def fitted() -> dict[str, Any]:
    """Fit predictors to the rows of a study, and note what they predict."""
    command("run", "studies/fitted.toml", "--out", "fitted/rows", "--in-process")
    frame = dlas.read("fitted/rows")
    told: dict[str, Any] = {"ids": frame["id"].tolist(), "rows": {}, "ahead": {}}
    for name, asked in PREDICTORS.items():
        to = f"fitted/{name}"
        dlas.fit(rows="fitted/rows", to=to, target="latency_s", hold_out="model/4", **asked)
        told["rows"][name] = predictions(dlas.predictor(to).predict("fitted/rows"))
        told["ahead"][name] = predictions(dlas.predict(to, "studies/ahead.toml", anyway=True).frame)
    return told


def search() -> dict[str, Any]:
    """Search for a subnetwork with a predictor and weights, and interrupt it."""
    pd.read_csv(PHONE).head(40).to_csv("phone.csv", index=False)
    dlas.import_rows("phone.csv", "phone")
    options: dict[str, Any] = {"target": "latency_s", "hold_out": "model/10", "options": {"costs": "stage"}}
    dlas.fit("additive", "phone", to="search/phone", **options)
    # The more is encoded, the larger the score: each layer adds its kernel and its expansion.
    weights = [3.0, 5.0, 7.0] * 20 + [3.0, 4.0, 6.0] * 20 + [0.0] * 8
    layer: dict[str, Any] = {
        "0.weight": np.array([weights], np.float32) / 300,
        "0.bias": np.ones(1, np.float32),
    }
    save_file(layer, "search/scores.safetensors")
    command(*SEARCH, "search/whole")
    whole = json.loads(Path("search/whole/search.json").read_text())
    shutil.rmtree("search/whole")
    interrupted_search("search/found", whole["generation"])
    best = {
        kind: [{name: each[name] for name in ("content", "score")} for each in whole[kind]]
        for kind in ("population", "front")
    }
    return {"generation": whole["generation"], **best}


def interrupted_search(folder: str, generations: int) -> None:
    """Press Ctrl-C at a moment between the first generation and the last one."""
    early, late = 0.0, 60.0
    while True:
        moment = (early + late) / 2
        pressed = threading.Timer(moment, _thread.interrupt_main)
        pressed.start()
        with contextlib.suppress(KeyboardInterrupt):
            dlas.search(
                "studies/search.toml",
                folder,
                estimator="search/phone",
                maximise="search/scores.safetensors",
                within={"latency_s": 0.03},
                population=16,
                generations=generations,
                winners=0,
                progress="silent",
            )
        pressed.cancel()
        path = Path(folder, "search.json")
        found = json.loads(path.read_text())["generation"] if path.exists() else 0
        if 0 < found < generations:
            return
        early, late = (moment, late) if found == 0 else (early, moment)
        shutil.rmtree(folder, ignore_errors=True)


def device() -> dict[str, Any]:
    """Begin to make a predictor for a device, and interrupt it before it has the first 28 networks."""
    interrupt(DEVICE, Path("device/rows/results.jsonl"), rows=22)
    return {"rows": lines_of(Path("device/rows/results.jsonl"))}


def deployed() -> dict[str, Any]:
    """Deploy a program of ONNX Runtime."""
    command("run", "studies/sweep.toml", "--out", "to_deploy", "--where", "compiler=onnxruntime")
    command("deploy", "to_deploy", "--fastest", "--where", "batch=2", "--to", "deployed")
    network = dlas.load("deployed")
    images = random_images((3, *network.shape[1:]))
    return {"shape": list(network.shape), "outputs": network(images).tolist()}


def flexible() -> dict[str, Any]:
    """Deploy all paths of a flexible network as one program."""
    command("run", "studies/flexible.toml", "--out", "to_serve")
    command("deploy", "to_serve", "--paths", "--to", "flexible")
    network: Any = dlas.load("flexible")
    images = random_images((3, *network.shape[1:]))
    outputs = {path: network.run(images, path=path).tolist() for path in network.paths}
    return {"shape": list(network.shape), "outputs": outputs}


MAKERS: dict[str, Callable[[], dict[str, Any]]] = {
    made.__name__: made for made in (sweep, own_parts, explored, fitted, search, device, deployed, flexible)
}


def halved(name: str, words: list[str], rows: int) -> dict[str, Any]:
    """Run a command that writes rows to its end in another folder, and interrupt it after so many rows."""
    command(*words, f"whole/{name}")
    interrupt([*words, name], Path(name, "results.jsonl"), rows)
    frame = dlas.read(f"whole/{name}")
    return {"rows": lines_of(Path(name, "results.jsonl")), "ids": sorted(frame["id"])}


def interrupt(words: list[str], path: Path, rows: int) -> None:
    """Press Ctrl-C once a file has so many rows."""
    command = [sys.executable, "-m", "dlas", *words]
    process = subprocess.Popen(command, start_new_session=True, preexec_fn=_heed_interrupts)
    while process.poll() is None and lines_of(path) < rows:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.wait()
    assert process.returncode == 130, f"{words} ended with {process.returncode} and {lines_of(path)} rows"


def _heed_interrupts() -> None:
    """Undo what a shell does to commands in its background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def lines_of(path: Path) -> int:
    """Return how many rows a file has."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def command(*words: str) -> None:
    """Run a command of the product."""
    subprocess.run([sys.executable, "-m", "dlas", *words], check=True)


def predictions(frame: pd.DataFrame) -> dict[str, list[float]]:
    """Return a prediction and its bounds by the point's id."""
    columns = ["latency_s", "latency_low_s", "latency_high_s"]
    table = frame.set_index("id")[columns].astype(object)
    return {str(name): values.tolist() for name, values in table.where(table.notna(), None).iterrows()}


def random_images(shape: tuple[int, ...]) -> Any:
    """Return the images that a program is tried on."""
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def keep(name: str) -> None:
    """Put what was made beside this file: what is large packed, logs left out."""
    shutil.rmtree(HERE / name, ignore_errors=True)
    shutil.copytree(name, HERE / name, ignore=shutil.ignore_patterns("logs", "__pycache__", "*.lock"))
    for path in [path for kind in PACKED for path in (HERE / name).rglob(kind)]:
        path.with_name(f"{path.name}.xz").write_bytes(lzma.compress(path.read_bytes(), preset=9))
        path.unlink()


def main() -> None:
    """Make what is named, or everything."""
    names = sys.argv[1:] or list(MAKERS)
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["DLAS_CACHE"] = f"{temporary}/cache"
        for each in ("parts", "studies"):
            shutil.copytree(HERE / each, Path(temporary, each))
        os.chdir(temporary)
        for name in names:
            if name in ("fitted", "search"):
                Path(name).mkdir()
            found = MAKERS[name]()
            keep(name)
            told = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
            told[name] = found
            EXPECTED.write_text(json.dumps(told, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
