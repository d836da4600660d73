"""What is wrong with a board, told from the desk: each check finds one thing, and says what to do."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

from dlas.axes.hardware import targets
from dlas.axes.hardware.profile import Profile, ServerAddress
from dlas.bench.measuring import on_board
from dlas.bench.measuring.doctor import SystemCheck, clocks_of
from dlas.bench.remote.address import Address
from dlas.bench.remote.asking import Answer, ask
from dlas.bench.remote.connection import OTHER_CODE, TVM, connect, reaching
from dlas.bench.store.fingerprint import versions
from dlas.errors import InputError, PointError, Unreachable

ON_ARM = {
    "neon": "asimd",
    "fp-armv8": "fp",
    "fullfp16": "asimdhp",
    "fp16fml": "asimdfhm",
    "dotprod": "asimddp",
    "rdm": "asimdrdm",
    "lse": "atomics",
    "i8mm": "i8mm",
    "bf16": "bf16",
    "sve": "sve",
    "sve2": "sve2",
}
"""Instructions that kernels are compiled to, by LLVM's name: the name that Linux gives them."""
ON_X86 = re.compile(r"ssse3|sse4\.[12]|avx\w*|fma|f16c")
"""LLVM's names of such instructions; Linux writes the same with other punctuation."""
ARCHITECTURES = {"arm64": "aarch64", "amd64": "x86_64"}


def checks(profile: Profile) -> Iterator[SystemCheck]:
    """Yield the checks of a board, from the profile to a session on it, without those that cannot be made.

    Raises
    ------
    InputError
        If the profile is of a device of this machine.
    """
    if profile.driver != "rpc":
        raise InputError(
            f"{profile.name!r} is a device of this machine (driver = {profile.driver!r}): "
            "run `dlas doctor` without --device"
        )
    server = profile.rpc
    if profile.unsupported or server is None:
        finding = profile.unsupported or "it has no table [rpc]"
        advice = "in a copy of the profile, add [rpc] with the host and the key of `dlas serve`"
        yield SystemCheck("profile", "fail", finding, advice)
        return
    compiled = target(profile)
    yield compiled
    yield compiler(server, profile.target)
    try:
        address = server.address()
    except Unreachable as error:
        yield SystemCheck("token", "fail", str(error), "docs/guides/boards.md tells how")
        return
    yield SystemCheck("token", "ok", f"there is one for {address.key!r}")
    try:
        answer = ask(address)
    except Unreachable as error:
        yield SystemCheck("server", "fail", str(error), "docs/guides/boards.md tells how a board is set up")
        return
    yield SystemCheck(
        "server", "ok", f"{address} answers: {answer.machine.get('cpu') or 'unknown processor'}"
    )
    yield clocks_of(answer.machine)
    same = same_tvm(answer)
    yield same
    if compiled.status == "ok":
        yield instructions(profile.target, answer)
        yield cores(profile.target, answer)
        if same.status == "ok":
            yield session(profile.target, address, answer)


def target(profile: Profile) -> SystemCheck:
    """Check that TVM compiles for the profile's target."""
    refusal = targets.refusal(profile.target) if profile.target else "there is no [target]"
    if refusal is None:
        return SystemCheck("target", "ok", str(profile.target.get("mcpu") or profile.target["kind"]))
    return SystemCheck("target", "fail", refusal, "correct [target] in the profile")


def compiler(server: ServerAddress, description: Mapping[str, Any]) -> SystemCheck:
    """Check that this machine has the C compiler that links for the board's processor."""
    name = server.compiler or "cc"
    if not shutil.which(name):
        advice = "install it on this machine, or name another as `compiler` in [rpc]; the board needs none"
        return SystemCheck("C compiler", "fail", f"{name!r} is not installed here", advice)
    asked = subprocess.run([name, "-dumpmachine"], capture_output=True, text=True, timeout=30)
    host = description if description.get("kind") == "llvm" else description.get("host", {})
    links, wanted = (_architecture(text.strip().partition("-")[0]) for text in (asked.stdout, _triple(host)))
    if asked.returncode == 0 and links != wanted:
        advice = f"install one for {wanted}, and name it as `compiler` in [rpc]: {wanted}-linux-gnu-gcc"
        return SystemCheck(
            "C compiler", "fail", f"{name!r} links for {links}, and the board is {wanted}", advice
        )
    return SystemCheck("C compiler", "ok", name)


def same_tvm(answer: Answer) -> SystemCheck:
    """Compare the board's TVM and DLAS with those here."""
    here = versions([TVM])[TVM]
    if answer.tvm == here and answer.code != on_board.code():
        return SystemCheck("DLAS", "fail", OTHER_CODE, "docs/guides/boards.md tells how")
    if answer.tvm == here:
        return SystemCheck("TVM", "ok", f"{here} on both")
    return SystemCheck(
        "TVM", "fail", f"{answer.tvm} there, {here} here", f"on the board: pip install {TVM}=={here}"
    )


def instructions(description: Mapping[str, Any], answer: Answer) -> SystemCheck:
    """Check that the board's processor has the instructions that the target is compiled to."""
    from tvm.target import Target, codegen

    host = description if description["kind"] == "llvm" else description.get("host", {})
    name = "instructions"
    if host.get("kind") != "llvm":
        return SystemCheck(
            name, "warn", "the target has no host", "add [target.host], or code for it is this host's"
        )
    compiled = _architecture(_triple(host).partition("-")[0])
    there = _architecture(str(answer.machine.get("architecture")))
    if compiled != there:
        advice = "correct mtriple in the profile's [target]"
        return SystemCheck(name, "fail", f"the target is for {compiled}, and the board is {there}", advice)
    features = codegen.llvm_get_cpu_features(Target(dict(host)))
    missing, processor = _missing({str(each) for each in features}, answer.flags), host.get("mcpu", compiled)
    if missing:
        away = ", ".join(f'"-{each}"' for each in missing)
        finding = f"the board lacks {', '.join(missing)}, which {processor} has"
        return SystemCheck(
            name, "fail", finding, f"correct mcpu, or add {away} to mattr in the profile's [target]"
        )
    return SystemCheck(name, "ok", f"the board has all that {processor} has")


def _missing(compiled: set[str], flags: list[str]) -> list[str]:
    """Return the instructions, by LLVM's names, that a processor lacks by the flags that Linux tells."""
    present = {flag.replace("_", "") for flag in flags}
    known = {feature: ON_ARM[feature] for feature in compiled & set(ON_ARM)} | {
        feature: feature.replace(".", "") for feature in compiled if ON_X86.fullmatch(feature)
    }
    return sorted(feature for feature, flag in known.items() if flag not in present)


def cores(description: Mapping[str, Any], answer: Answer) -> SystemCheck:
    """Compare the target's cores with those that the server may use."""
    host = description if description["kind"] == "llvm" else description.get("host", {})
    wanted, there = int(host.get("num-cores", 1)), int(answer.machine.get("allowed_cores") or 0)
    if wanted <= there:
        return SystemCheck("cores", "ok", f"{wanted} of {there}")
    advice = "correct num-cores in the profile's [target], or let the server use more"
    return SystemCheck("cores", "fail", f"the target has {wanted}, and the server may use {there}", advice)


def session(description: Mapping[str, Any], address: Address, answer: Answer) -> SystemCheck:
    """Open a session, and look for the target's device in it."""
    kind = str(description["kind"])
    if answer.busy_s is not None:
        finding = f"another one has lasted {answer.busy_s:.0f} s"
        return SystemCheck("session", "warn", finding, "one measurement runs at a time: others wait for it")
    try:
        with reaching(address):
            device = connect(address, wait_s=0).device("cpu" if kind == "llvm" else kind)
            exists = bool(device.exist)
    except PointError as error:
        return SystemCheck("session", "fail", str(error), "see what `dlas serve` prints on the board")
    if exists:
        return SystemCheck("session", "ok", f"one was opened, and has a device of kind {kind}")
    advice = f"install a TVM on the board that is built for {kind}, and its driver"
    return SystemCheck("session", "fail", f"TVM on the board finds no device of kind {kind}", advice)


def _triple(host: Mapping[str, Any]) -> str:
    """Return what a target of processors is compiled for, by default this machine's."""
    from tvm.target import codegen

    return str(host.get("mtriple") or codegen.llvm_get_system_triple())


def _architecture(name: str) -> str:
    return ARCHITECTURES.get(name, name)
