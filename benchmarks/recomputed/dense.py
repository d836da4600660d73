"""``experiments/dense``."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from benchmarks.dense import kind_of
from benchmarks.peers import Ratio, ratio
from benchmarks.recomputed.kept import EXPERIMENTS
from benchmarks.recomputed.markdown import Value
from dlas.stack import Layer
from dlas.sweep.rows.layer_times import timed_layers
from dlas.sweep.rows.results import Row, read_rows

AVX_512, AVX2, TWO_THREADS, INDUCTOR = "dense/rows", "dense/avx2", "dense/two-threads", "dense/inductor"
CHOICES, CHOOSER = "dense/choices", "blocked"
OURS, TUNED = "hand", "metaschedule"
PEERS = {"ONNX Runtime": "onnxruntime", "OpenVINO": "openvino", "ncnn": "ncnn", "MNN": "mnn"}
PEAK_AVX2 = 101e9
"""Operations a second of one core in registers: the most of seven runs of ``python -m benchmarks.peak 1``."""
BEHIND: dict[str, list[set[str]]] = {
    "nothing": [set()],
    "ReLU": [{"Relu"}],
    "ReLU6, hard-swish": [{"Clip"}, {"Add", "Clip", "Div", "Mul"}],
    "a sum, ReLU": [{"Add", "Relu"}],
    "a sum": [{"Add"}],
    "SiLU": [{"Swish"}],
}
"""What a 1x1 convolution's kernel computes of its sums, by the operators fused into it."""
TYPES = {"float32": "none", "float16": "float16", "bfloat16": "bfloat16", "int8": "int8"}


@cache
def _rows(folder: str, threads: int | None = None) -> dict[tuple[str, str, str], Row]:
    """Return the rows by network, compression and compiler, on as many threads as said or on the most."""
    found = sorted(read_rows(EXPERIMENTS / folder), key=_threads)
    return {
        (row.model["name"], row.compression["name"], row.compiler["name"]): row
        for row in found
        if threads in (None, _threads(row))
    }


def _threads(row: Row) -> int:
    return int(row.hardware.get("threads", 1))


def _networks(folder: str) -> set[str]:
    return {network for network, _, _ in _rows(folder)}


def against(network: str, compiler: str, folder: str) -> Ratio | None:
    """Return a runtime's time over ours on a network in float32; None where it has none."""
    rows = _rows(folder)
    own, other = rows[network, "none", OURS], rows[network, "none", compiler]
    return ratio(own, other) if own.timed and other.timed else None


def against_best(network: str, folder: str) -> Ratio | None:
    """Return the ratio to the runtime over which ours leads least; None where nothing is to be compared."""
    found = [each for name in PEERS.values() if (each := against(network, name, folder))]
    return min(found, key=lambda each: each.median, default=None)


def _against_best(folder: str) -> list[Ratio]:
    return [each for name in _networks(folder) if (each := against_best(name, folder))]


def networks(cells: Mapping[str, str], folder: str = AVX_512) -> dict[str, Value]:
    """Return the ratios of a network, with the spread of the smallest over turns."""
    found: dict[str, Value] = {}
    for title, name in PEERS.items():
        each = against(cells["network"], name, folder)
        found[title] = each.median if each else None
    best = against_best(cells["network"], folder)
    return {**found, "the best": [best.median, best.spread] if best else None}


def networks_avx2(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return :func:`networks` on the processor with vectors of 256 bits."""
    return networks(cells, AVX2)


def networks_two_threads(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return :func:`networks` on two threads, and how many times as fast as on one ours is."""
    one, two = (_rows(TWO_THREADS, threads)[cells["network"], "none", OURS] for threads in (1, 2))
    own = ratio(two, one).median if one.timed and two.timed else None
    return {**networks(cells, TWO_THREADS), "one thread": own}


def inductor(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the time of Inductor, which timed kernels before, over ours, with the spread over turns."""
    found = against(cells["network"], "torch_compile", INDUCTOR)
    return {"Inductor": [found.median, found.spread] if found else None}


def gained_on_one(network: str) -> float:
    """Return what each layer on the better of one and two threads would gain over all on two, in per cent."""
    rows = [_rows(TWO_THREADS, threads)[network, "none", OURS] for threads in (1, 2)]
    one, two = (
        {layer["name"]: seconds for layer in row.layers if (seconds := layer.get("latency_s"))}
        for row in rows
    )
    both = one.keys() & two.keys()
    return 100 * (sum(two[name] for name in both) / sum(min(one[name], two[name]) for name in both) - 1)


def most_gained_on_one() -> float:
    """Return the largest of :func:`gained_on_one`."""
    return max(map(gained_on_one, _networks(TWO_THREADS)))


@cache
def _kinds(folder: str, compiler: str) -> dict[str, tuple[float, float]]:
    """Return the seconds of each kind of layer that both tell, under `hand` and another compiler."""
    rows = _rows(folder)
    found: dict[str, tuple[float, float]] = {}
    for network in _networks(folder):
        own, other = (timed_layers(rows[network, "none", name]) for name in (OURS, compiler))
        theirs = {layer["name"]: seconds for layer, seconds in other}
        for layer, seconds in own:
            if seconds and (other_s := theirs.get(layer["name"])):
                kind = kind_of(layer).partition(",")[0]
                before = found.get(kind, (0.0, 0.0))
                found[kind] = before[0] + seconds, before[1] + other_s
    return found


def _of_kind(kind: str, folder: str, compiler: str) -> tuple[float, float]:
    """Return a kind's share of the time under `hand` in per cent, and the other's time over that."""
    kinds = _kinds(folder, compiler)
    own, other = kinds[kind]
    return 100 * own / sum(seconds for seconds, _ in kinds.values()), other / own


@cache
def _by_algorithm(network: str) -> dict[str, dict[str, tuple[str, float]]]:
    """Return 3x3 layers without strides by what was asked for: what computed each, and its seconds."""
    found: dict[str, dict[str, tuple[str, float]]] = {}
    for row in read_rows(EXPERIMENTS / CHOICES):
        if row.model["name"] == network:
            found[_form(row.algorithm["name"], row.algorithm)] = {
                layer["name"]: (_form(layer["algorithm"], layer["options"]), seconds)
                for layer in row.layers
                if kind_of(layer).partition(",")[0] == "3x3" and (seconds := layer.get("latency_s"))
            }
    return found


def _form(name: str, options: Mapping[str, Any]) -> str:
    return f"{name} {options.get('tile', 4)}" if name == "winograd" else name


def choices(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return how many 3x3 layers `blocked` computes by winograd, and what the fastest for each would gain.

    All times are of rows with one algorithm for every layer.
    """
    by_algorithm = dict(_by_algorithm(cells["network"]))
    chosen, taken, least = by_algorithm.pop(CHOOSER), 0.0, 0.0
    for layer, (form, _) in chosen.items():
        seconds = {name: layers[layer][1] for name, layers in by_algorithm.items()}
        taken, least = taken + seconds[form], least + min(seconds.values())
    transformed = sum(form != "spatial_pack" for form, _ in chosen.values())
    return {"3x3 layers": len(chosen), "by winograd": transformed, "% gained": 100 * (taken / least - 1)}


def kinds_avx2(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return a kind of layer's share of the time of layers that both tell, and the other's time over ours."""
    share, over = _of_kind(cells["kind"], AVX2, "onnxruntime")
    return {"% of the time": share, "ONNX Runtime": over}


@cache
def _pointwise() -> dict[str, tuple[float, float]]:
    """Return seconds and multiply-adds of 1x1 convolutions on one thread with AVX2, by :data:`BEHIND`."""
    found: dict[str, tuple[float, float]] = {}
    for layer, seconds in _pointwise_layers():
        before = found.get(_behind(layer), (0.0, 0.0))
        found[_behind(layer)] = before[0] + seconds, before[1] + layer["macs"]
    return found


def _pointwise_layers() -> list[tuple[Layer, float]]:
    """Return the 1x1 convolutions of all networks on one thread with AVX2, with their seconds."""
    own = (row for (_, _, compiler), row in _rows(AVX2).items() if compiler == OURS)
    layers = (timed for row in own for timed in timed_layers(row))
    return [(layer, seconds) for layer, seconds in layers if seconds and kind_of(layer).startswith("1x1")]


def _behind(layer: Layer) -> str:
    if layer["output"][2:] == [1, 1]:
        return "anything, on images of 1x1"
    fused = set(layer["fused"])
    return next(name for name, operators in BEHIND.items() if fused in operators)


def pointwise(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the share of 1x1 convolutions' time, and the share of the peak that those of one kind reach."""
    seconds, macs = _pointwise()[cells["behind the sums"]]
    total = sum(each for each, _ in _pointwise().values())
    return {"% of their time": 100 * seconds / total, "% of the peak": _of_peak([(seconds, macs)])}


def pointwise_mean() -> float:
    """Return the share of the core's peak that 1x1 convolutions reach, weighted by time, in per cent."""
    return _of_peak((seconds, layer["macs"]) for layer, seconds in _pointwise_layers())


def pointwise_to(channels: str, filters: str) -> float:
    """Return the share of the peak that 1x1 convolutions from so many channels to so many reach, in %."""
    shape, layers = (int(channels), int(filters)), _pointwise_layers()
    return _of_peak(
        (seconds, layer["macs"]) for layer, seconds in layers if (layer["c"], layer["k"]) == shape
    )


def _of_peak(timed: Iterable[tuple[float, float]]) -> float:
    """Return the share of the core's peak of layers with these seconds and multiply-adds, in per cent."""
    seconds, macs = map(sum, zip(*timed, strict=True))
    return 100 * 2 * macs / seconds / PEAK_AVX2


def mean(folder: str = AVX_512) -> float:
    """Return the geometric mean over networks of the ratio to the best."""
    return statistics.geometric_mean(each.median for each in _against_best(folder))


def ahead(folder: str = AVX_512) -> float:
    """Return on how many networks ours is ahead of all others by more than the spread of turns."""
    return float(sum(each.median - each.spread > 1 for each in _against_best(folder)))


def networks_kept(folder: str = AVX_512) -> float:
    """Return the number of networks that are compared."""
    return float(len(_against_best(folder)))


def _processor_s(row: Row) -> float:
    """Return the processor time of a run, which other work on the machine changes less."""
    assert row.cpu_s is not None and row.timed
    return row.cpu_s


def types(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the speed of a network in a number type: against runtimes in the same type, and float32 here."""
    rows, network, kind = _rows("dense/types"), cells["network"], TYPES[cells["type"]]
    own = _processor_s(rows[network, kind, OURS])
    return {
        "ONNX Runtime": _processor_s(rows[network, kind, "onnxruntime"]) / own,
        "OpenVINO": _processor_s(rows[network, kind, "openvino"]) / own,
        "over float32": _processor_s(rows[network, "none", OURS]) / own,
    }


def searched(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the time of fixed tiles over that of searched ones, and how many layers have others."""
    rows = _rows("dense/tuned")
    fixed, found = rows[cells["network"], "none", OURS], rows[cells["network"], "none", TUNED]
    over = ratio(found, fixed)
    changed = [layer["trial"] > 0 for layer in found.layers if layer.get("trial") is not None]
    return {
        "tuned": [over.median, over.spread],
        "other tiles": float(sum(changed)),
        "searched layers": float(len(changed)),
    }


def searched_kinds(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the share of the time of a kind of layer, and what a search gains there."""
    share, over = _of_kind(cells["kind"], "dense/tuned", TUNED)
    return {"% of the time": share, "tuned": 1 / over}
