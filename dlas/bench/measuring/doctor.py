"""Checks that this machine can measure reliably, each with advice."""

from __future__ import annotations

import configparser
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from dlas.bench.measuring import disturbance
from dlas.bench.measuring.addresses import fixed
from dlas.bench.measuring.disturbance import LIMITS, Disturbance
from dlas.bench.measuring.environment import CHECKOUT, version
from dlas.bench.measuring.machine import Machine
from dlas.bench.store import cache

TVM_PINS = ("apache-tvm", "apache-tvm-ffi")
EXTRAS = ("openvino", "ncnn", "mnn")
"""Packages that an extra of the same name installs."""
IMPORTS = """
import importlib, json, sys
sys.modules["openvino_telemetry"] = None
for package, modules in json.loads(sys.argv[1]).items():
    print(json.dumps([package, None]), flush=True)
    try:
        for module in modules:
            importlib.import_module(module)
    except BaseException as error:
        print(json.dumps([package, f"{type(error).__name__}: {error}"]), flush=True)
print(json.dumps(["", None]), flush=True)
"""
"""Imports modules by package, and says which package it is at and what its import raises.

OpenVINO is imported without its telemetry, which would send a message over the network.
"""
IMPORT_SECONDS = 300.0
PROBE = """
import sys, tvm
tvm.ir.save_json(tvm.tirx.IntImm("int32", 1))
sys.stdout.write("saved")
"""
"""Code that tuning depends on, and that crashes if apache-tvm and apache-tvm-ffi do not match."""
WANTED_GIB = 5
"""Free disk that a study of about a hundred points needs for networks, builds and rows."""


@dataclass(frozen=True)
class SystemCheck:
    """One question and its answer."""

    name: str
    status: Literal["ok", "warn", "fail"]
    """``fail`` where a study cannot run properly, ``warn`` where its measurements would be less reliable or
    some parts are unavailable.
    """
    finding: str
    """The answer."""
    advice: str = ""
    """What to do; empty where all is well."""


def checks(machine: Machine | None = None) -> list[SystemCheck]:
    """Run every check on this machine; takes a few seconds, mostly for TVM."""
    machine = machine or Machine()
    return [
        packages(),
        extras(),
        torchvision(),
        tvm_ffi(),
        threads(machine),
        clocks(machine),
        addresses(),
        load(machine),
        disk("disk for the cache", cache.default_root()),
        disk("disk for results", Path.cwd()),
        compiler(),
    ]


def packages() -> SystemCheck:
    """Compare the installed packages with the ones that this project requires."""
    needed = required()
    wrong = []
    for requirement in needed:
        installed = version(requirement.name)
        if installed is None:
            wrong.append(f"{requirement.name} is missing")
        elif not requirement.specifier.contains(installed, prereleases=True):
            wrong.append(f"{requirement.name} is {installed}, not {requirement.specifier}")
    present = [requirement.name for requirement in needed if version(requirement.name) is not None]
    wrong += [f"{name} cannot be imported: {why}" for name, why in unimportable(present).items()]
    if wrong:
        advice = "install with `pip install -c constraints.txt -e .` in the checkout, or reinstall dlas"
        return SystemCheck("packages", "fail", "; ".join(wrong), advice)
    shown = [f"{name} {version(name)}" for name in ("torch", *TVM_PINS, "onnxruntime")]
    return SystemCheck("packages", "ok", f"all {len(needed)} as required, with {', '.join(shown)}")


def extras() -> SystemCheck:
    """Look for the optional packages; without them some parts are unavailable."""
    missing = [name for name in EXTRAS if version(name) is None]
    if missing:
        advice = f"for the parts that need them: pip install 'dlas[{','.join(missing)}]'"
        return SystemCheck("optional packages", "warn", f"{', '.join(missing)} not installed", advice)
    if broken := unimportable(EXTRAS):
        found = "; ".join(f"{name} cannot be imported: {why}" for name, why in broken.items())
        return SystemCheck("optional packages", "warn", found, "install them again")
    return SystemCheck("optional packages", "ok", ", ".join(f"{name} {version(name)}" for name in EXTRAS))


def unimportable(names: Sequence[str], interpreter: str = sys.executable) -> dict[str, str]:
    """Return why packages cannot be imported, by name, those that can left out; in a process of its own."""
    modules: dict[str, list[str]] = {canonicalize_name(name): [] for name in names}
    for module, packages_of in metadata.packages_distributions().items():
        for package in dict.fromkeys(map(canonicalize_name, packages_of)):
            if package in modules and module.isidentifier() and not module.startswith("_"):
                modules[package].append(module)
    command = [interpreter, "-c", IMPORTS, json.dumps(modules)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=IMPORT_SECONDS, check=False)
        told, ending = run.stdout, f"the interpreter ended with exit code {run.returncode}"
    except subprocess.TimeoutExpired as stopped:
        told = stopped.stdout.decode() if isinstance(stopped.stdout, bytes) else stopped.stdout or ""
        ending = f"it took longer than {IMPORT_SECONDS:g} s"
    lines = [json.loads(line) for line in told.splitlines() if line.startswith('["')]
    broken = {package: why.strip().partition("\n")[0] for package, why in lines if why}
    if lines and lines[-1][0]:  # it ended before its last line
        broken.setdefault(lines[-1][0], ending)
    return broken


def required() -> list[Requirement]:
    """Return the run-time requirements: the checkout's own, else the installed package's."""
    settings = configparser.ConfigParser()
    if settings.read(CHECKOUT / "setup.cfg"):
        lines = settings.get("options", "install_requires", fallback="").splitlines()
    else:
        lines = [line for line in metadata.requires("dlas") or [] if "extra ==" not in line]
    return [Requirement(line) for line in lines if line.strip()]


def torchvision() -> SystemCheck:
    """Compare torch with the one that torchvision was built for."""
    name = "torchvision's torch"
    if version("torchvision") is None or version("torch") is None:
        return SystemCheck(name, "fail", "torch or torchvision is missing", "install both")
    lines = [Requirement(line) for line in metadata.requires("torchvision") or []]
    (required_torch,) = [line.specifier for line in lines if line.name == "torch"]
    finding = (
        f"torchvision {version('torchvision')} wants torch {required_torch}; torch is {version('torch')}"
    )
    if required_torch.contains(version("torch") or "", prereleases=True):
        return SystemCheck(name, "ok", finding)
    return SystemCheck(name, "fail", finding, "install the pair that constraints.txt names")


def tvm_ffi(interpreter: str = sys.executable) -> SystemCheck:
    """Check, in a separate process, that apache-tvm and apache-tvm-ffi match."""
    pins = " ".join(str(line).replace(" ", "") for line in required() if line.name in TVM_PINS)
    advice = f"pip install {pins}"
    try:
        probe = subprocess.run(
            [interpreter, "-c", PROBE], capture_output=True, text=True, timeout=120, check=False
        )
    except subprocess.TimeoutExpired:
        return SystemCheck("TVM", "fail", "tvm.ir.save_json hung for two minutes", advice)
    if probe.returncode == 0 and probe.stdout.endswith("saved"):
        return SystemCheck("TVM", "ok", f"apache-tvm {version('apache-tvm')} saves and loads")
    lines = probe.stderr.strip().splitlines()
    how = f"died of signal {-probe.returncode}" if probe.returncode < 0 else (lines or ["failed"])[-1]
    finding = f"tvm.ir.save_json {how} (apache-tvm-ffi {version('apache-tvm-ffi')})"
    return SystemCheck("TVM", "fail", finding, advice)


def threads(machine: Machine) -> SystemCheck:
    """Compare the cores of the machine with those that this process may use."""
    allowed, cores, quota = machine.allowed(), machine.cores(), machine.quota()
    everything = machine.cores(machine.online())
    finding = f"{len(cores)} of {len(everything)} cores ({len(allowed)} logical processors)"
    if quota is not None:
        finding += f", a quota of {quota:g} processors"
    if quota is not None and quota < len(cores):
        advice = "a quota stops threads in mid-run: lift it, or study threads well below it"
        return SystemCheck("threads", "warn", finding, advice)
    if len(cores) < len(everything):
        return SystemCheck(
            "threads", "warn", finding, "others may have the rest: expect their noise, or lift the affinity"
        )
    return SystemCheck("threads", "ok", finding)


def clocks(machine: Machine) -> SystemCheck:
    """Check whether the clock may change during a measurement."""
    return clocks_of(machine.describe())


def clocks_of(described: Mapping[str, Any]) -> SystemCheck:
    """Check the clock of a machine as :meth:`Machine.describe` describes it."""
    if described.get("governor") is None:
        finding = "the kernel shows no clocks" + (
            " (a virtual machine)" if described.get("hypervisor") else ""
        )
        return SystemCheck(
            "clocks", "warn", finding, "they cannot be held: trust ratios within one run, not absolute times"
        )
    boost = described.get("boost")
    finding = f"governor {described['governor']}, boost {_on_off(boost)}"
    if described["governor"] == "performance" and boost is not True:
        return SystemCheck("clocks", "ok", finding)
    advice = "for steady times: cpupower frequency-set -g performance, and switch boost off"
    return SystemCheck("clocks", "warn", finding, advice)


def addresses() -> SystemCheck:
    """Ask whether programs can be at the same addresses each time."""
    with fixed() as allowed:
        pass
    if allowed:
        return SystemCheck("addresses", "ok", "the same in every sweep")
    advice = "allow the system call personality (in Docker: --security-opt seccomp=unconfined)"
    found = "random, which makes some kernels a tenth slower in one sweep than in another"
    return SystemCheck("addresses", "warn", found, advice)


def load(machine: Machine, seconds: float = 0.5) -> SystemCheck:
    """Measure for ``seconds`` how much of the processors other processes use."""
    before = disturbance.read(machine)
    time.sleep(seconds)
    disturbed = Disturbance.between(before, disturbance.read(machine))
    others = disturbance.fraction([disturbed.others_s], [disturbed.capacity_s])
    stolen = disturbance.fraction([disturbed.steal_s], [disturbed.capacity_s])
    if others is None or stolen is None:
        return SystemCheck("load", "warn", "the kernel does not tell", "measure on Linux with /proc mounted")
    finding = f"others use {others:.0%} of the processors, {stolen:.0%} stolen by a hypervisor"
    average = machine.load_average()
    if average is not None:
        finding += f"; load average {average:g}"
    if others > LIMITS["load"] or stolen > LIMITS["steal"]:
        return SystemCheck("load", "warn", finding, "stop what else is running, or rows will be marked noisy")
    return SystemCheck("load", "ok", finding)


def disk(name: str, folder: Path) -> SystemCheck:
    """Compare the free disk under a folder, which need not exist yet, with the space that a study takes."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(existing).free / 2**30
    finding = f"{free:.0f} GiB free under {folder}"
    if not existing.is_dir():
        return SystemCheck(name, "fail", f"{existing} is a file", "choose a folder")
    if not os.access(existing, os.W_OK):
        return SystemCheck(name, "fail", f"{existing} cannot be written", "choose another folder")
    if free < 1:
        return SystemCheck(name, "fail", finding, "a study would stop: free some, or choose another folder")
    if free < WANTED_GIB:
        return SystemCheck(name, "warn", finding, f"a study of a hundred points takes up to {WANTED_GIB} GiB")
    return SystemCheck(name, "ok", finding)


def compiler() -> SystemCheck:
    """Look for the C++ compiler and the headers that torch.compile needs."""
    preferred = os.environ.get("CXX")
    paths = map(shutil.which, filter(None, (preferred, "g++", "clang++")))
    path = next(filter(None, paths), None)
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    without = "without it torch_compile is unsupported, everything else works"
    if path is None:
        return SystemCheck("C++ compiler", "warn", f"no {preferred or 'g++'}", f"install g++: {without}")
    if not header.exists():
        return SystemCheck(
            "C++ compiler", "warn", f"{path}, but no {header}", f"install Python's headers: {without}"
        )
    return SystemCheck("C++ compiler", "ok", path)


def _on_off(value: bool | None) -> str:
    return {True: "on", False: "off", None: "not shown"}[value]
