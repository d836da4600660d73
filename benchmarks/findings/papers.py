"""The headline figures of the five papers, each with what is found here.

The papers' figures are constants, each with its section, table or figure; perf4sight's are of its appendix.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.findings.headlines import NONE, OPPOSITE, Headline, verdict_of
from benchmarks.findings.written import EVALUATED, cell, claimed

DLAS, PERF4SIGHT, OFA, MIRAGE, LEAF = "DLAS", "perf4sight", "OFA latency", "MIRAGE", "LeAF"
RECOMPUTE = "python -m benchmarks.recomputed"


def headlines() -> list[Headline]:
    """Return all of them, paper by paper."""
    return [*_dlas(), *_perf4sight(), *_ofa(), *_mirage(), *_leaf()]


def _missing(paper: str, place: str, theirs: str, reason: str) -> Headline:
    """Return a figure that nothing here can be set beside."""
    return Headline(paper, place, theirs, reason, NONE, "")


def _dlas() -> Sequence[Headline]:
    command = f"{RECOMPUTE} precision"
    int8 = claimed("precision", "extreme", "max", "int8", "untuned")
    low, high = (claimed("precision", "extreme", choose, "float16", "untuned") for choose in ("min", "max"))
    tuned = claimed("precision", "extreme", "max", "float16", "metaschedule")
    least = claimed("precision", "accuracy", "min")
    fastest = 9.2
    return [
        Headline(
            DLAS,
            "6.3.2",
            f"untuned int8 is up to {fastest} times as fast, past its four",
            f"up to {int8} times",
            verdict_of(float(int8) > 4),
            command,
            [int8],
        ),
        Headline(
            DLAS,
            "6.3.2",
            "untuned float16 is slower than float32 on CPUs",
            f"{low} to {high} times as fast",
            verdict_of(float(high) < 1),
            command,
            [low, high],
        ),
        Headline(
            DLAS,
            "6.3.2",
            "tuned float16 is slower than float32 still",
            f"up to {tuned} times as fast",
            verdict_of(float(tuned) < 1, OPPOSITE),
            command,
            [tuned],
        ),
        Headline(
            DLAS,
            "6.3.2",
            "calibrated int8 costs 1.8 points on CIFAR-10, 22.2 on ImageNet",
            f"nothing on digits, where no type falls below {least} %: too easy to tell",
            NONE,
            command,
            [least],
        ),
        _missing(DLAS, "Tables 2 and 5, Figure 3", "accuracy by pruning level", "no CIFAR-10, no ImageNet"),
        _missing(DLAS, "Figures 5 and 7", "times on two GPUs", "neither of these GPUs"),
    ]


def _perf4sight() -> Sequence[Headline]:
    models = {"mnasnet1_0": "MnasNet", "resnet50": "ResNet-50", "googlenet": "GoogLeNet"}
    errors = {
        target: {
            name: claimed("training-cost", "of_network", model, target) for model, name in models.items()
        }
        for target in ("memory", "time")
    }
    orders = {target: sorted(own, key=lambda name: float(own[name])) for target, own in errors.items()}
    told = "; ".join(
        f"{target} {', '.join(f'{name} {errors[target][name]} %' for name in order)}"
        for target, order in orders.items()
    )
    memory, time = (claimed("training-cost", "straight", target) for target in ("memory", "time"))
    return [
        Headline(
            PERF4SIGHT,
            "C",
            "easiest is MnasNet, then ResNet-50, then GoogLeNet",
            told,
            verdict_of(all(order == [*models.values()] for order in orders.values()), OPPOSITE),
            f"{RECOMPUTE} training-cost",
            [number for own in errors.values() for number in own.values()],
        ),
        Headline(
            PERF4SIGHT,
            "Figure 5",
            "memory and time are lines over the batch size",
            f"a line explains at least {memory} % of the variance of memory, {time} % of that of time",
            verdict_of(min(float(memory), float(time)) > 85),
            f"{RECOMPUTE} training-cost",
            [memory, time],
        ),
        _missing(PERF4SIGHT, "D", "four subsets of ImageNet on a device", "no ImageNet"),
    ]


def _ofa() -> Sequence[Headline]:
    column = "`latency_s`, RMSE / mean"
    error = cell("ofa-latency", "errors", column, EVALUATED, predictor="`subnet_mlp`, exact size")
    total = cell("ofa-latency", "errors", column, predictor="`additive` of stages")
    floor = cell("ofa-latency", "errors", "mean error", predictor="noise floor")
    few, many, titan, phone = (
        cell("ofa-latency", "by_rows", column, EVALUATED, predictor=predictor)
        for predictor, column in (
            ("`fine_tuned` from a Titan RTX, batch 64", "50 rows"),
            ("`subnet_mlp` from scratch", "700"),
            ("`fine_tuned` from a Titan RTX, as is", "700"),
            ("`fine_tuned` from a Note10, as is", "700"),
        )
    )
    command = "dlas evaluate experiments/ofa-latency/rows ..."
    return [
        Headline(
            OFA,
            "Table 1",
            "a perceptron errs by 1.0 to 2.5 % (RMSE over the mean)",
            f"{error} %, a sum of costs {total} %; one measurement errs by {floor} % itself",
            verdict_of(float(error) <= 2.5),
            command,
            [error, total, floor],
        ),
        Headline(
            OFA,
            "5.2, Figure 5",
            "700 rows are enough to fine-tune to another device",
            f"50 are, in logarithms from a GPU: {few} %, as 700 from scratch ({many} %)",
            verdict_of(float(few) <= float(many)),
            command,
            [few, many],
        ),
        Headline(
            OFA,
            "Tables 2 and 3",
            "a phone is the better base than a GPU",
            f"in the paper's way {phone} % from the phone, {titan} % from a GPU, at 700 rows",
            verdict_of(float(phone) < float(titan), OPPOSITE),
            command,
            [phone, titan],
        ),
        _missing(OFA, "Table 1", "half of ProxylessNAS's RMSE on a Note10", "its model is not published"),
    ]


def _mirage() -> Sequence[Headline]:
    own = {"compiler": "onnxruntime", "threads": "1"}
    within = cell("kernels", "kernels", "within 10 %", kernels="20 µs and longer", **own)
    again = cell("kernels", "kernels", "again", kernels="20 µs and longer", **own)
    errors = {
        name: cell("kernels", "networks", "boosted_kernels", compiler=name, threads="1")
        for name in ("onnxruntime", "hand", "torch_eager")
    }
    sums = [claimed("kernels", "sums", name, "0.5") for name in errors]
    network, general = (
        [claimed("kernels", "generality", choose, column, "others") for choose in ("min", "max")]
        for column in ("the network's own", "kernels")
    )
    command, most = "python -m benchmarks.kernel_predictions", 15.4
    compiled, eager = [errors["onnxruntime"], errors["hand"]], errors["torch_eager"]
    return [
        Headline(
            MIRAGE,
            "Table 4, 6.1",
            "89.9 % of kernels are predicted within 10 %",
            f"{within} % of those of 20 µs and more; {again} % repeat within 10 %",
            verdict_of(float(within) >= 89.9),
            command,
            [within, again],
        ),
        *(
            Headline(MIRAGE, "Table 6, 6.2", f"networks never seen: {most} % off", ours, verdict, command, on)
            for ours, verdict, on in (
                (
                    f"{compiled[0]} % for ONNX Runtime, {compiled[1]} % for `hand`",
                    verdict_of(max(map(float, compiled)) <= most),
                    compiled,
                ),
                (f"{eager} % for eager PyTorch", verdict_of(float(eager) <= most), [eager]),
            )
        ),
        Headline(
            MIRAGE,
            "Table 1",
            "kernels add up to 98.3 % of a network's time",
            f"{', '.join(map(str, sums))} times it in the median, for {', '.join(errors)}",
            verdict_of(all(abs(float(each) - 1) <= 0.02 for each in sums)),
            f"{RECOMPUTE} kernels",
            sums,
        ),
        Headline(
            MIRAGE,
            "6.2, Figure 5",
            "what is general costs 11.8 points over what is fitted to the network",
            f"{general[0]} to {general[1]} % from kernels, {network[0]} to {network[1]} % from its own rows",
            verdict_of(float(general[1]) - float(network[0]) <= 11.8),
            command,
            [*general, *network],
        ),
        _missing(MIRAGE, "Table 7", "energy of networks: 14.9 % off", "no sensor of energy here"),
        _missing(MIRAGE, "Table 8", "several boards: RMSE 9.5 and 13.6 % lower", "no boards"),
        _missing(MIRAGE, "2.1", "times at 3,600 settings of clocks", "virtual machines show no clocks"),
    ]


def _leaf() -> Sequence[Headline]:
    gain, low, high = (claimed("leaf-digits", "mean_gain", place) for place in "012")
    small, large = (claimed("leaf-digits", "correlation", "mobilenet-v2", batch) for batch in ("1", "64"))
    least = claimed("leaf-digits", "work", "resnet50", "1111", "1")
    batch, of_batch, compiler, of_compiler = (
        claimed("leaf-digits", name, "rows", along)
        for along in ("batch", "compiler")
        for name in ("changed", "compared")
    )
    command = f"{RECOMPUTE} leaf-digits"
    return [
        Headline(
            LEAF,
            "4.5, Figure 6",
            "fine-tuning the Pareto set gains 2.4 points (MobileNetV2, ImageNet)",
            f"{gain} points [{low}, {high}] (ResNet-18, digits with noise): no gain is shown",
            verdict_of(float(low) <= 2.4 <= float(high)),
            "python -m benchmarks.fine_tuning experiments/leaf-digits/fine-tuned",
            [gain, low, high],
        ),
        Headline(
            LEAF,
            "4.5, Figure 7",
            "latency follows multiply-adds more closely in large batches: 64 against 56 %, on a GPU",
            f"less closely: rank correlation {large} at batch 64, {small} at batch 1 (MobileNetV2)",
            verdict_of(float(large) > float(small), OPPOSITE),
            command,
            [large, small],
        ),
        Headline(
            LEAF,
            "4.2, Figure 3",
            "all shallow phases of ResNet-50 take 0.68 to 0.69 billion multiply-adds",
            f"{least} billion",
            verdict_of(abs(float(least) - 0.69) < 0.02),
            command,
            [least],
        ),
        Headline(
            LEAF,
            "4.2, Figure 4",
            "the Pareto set changes with the batch size",
            f"surely at {batch} of {of_batch} pairs of batch sizes (ResNet-18, digits)",
            verdict_of(float(batch) > 0),
            "dlas paths experiments/leaf-digits/rows",
            [batch, of_batch],
        ),
        Headline(
            LEAF,
            "4.4",
            "and with the device",
            f"with the compiler at {compiler} of {of_compiler} places; there is one device",
            NONE,
            "dlas paths experiments/leaf-digits/rows",
            [compiler, of_compiler],
        ),
        _missing(LEAF, "4.2", "ResNet-50 from 76.1 to 64.8 % (ImageNet)", "no ImageNet"),
    ]
