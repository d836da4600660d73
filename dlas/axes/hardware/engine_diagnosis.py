"""What is wrong with an engine of WebAssembly: each check finds one thing, and says what to do."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dlas.axes.hardware.engines import WebAssemblyEngine
from dlas.bench.engines.process import EngineFailed
from dlas.bench.measuring.doctor import SystemCheck
from dlas.errors import PointError
from dlas.lowering.webassembly.linking import MISSING, linker
from dlas.lowering.webassembly.writing import CODE, PARAMETERS, write_kernel
from dlas.stack.engine import Engine

NUMBERS = 64
FINE_S = 1e-4
"""A clock with longer steps needs samples of many runs."""


def checks(device: WebAssemblyEngine) -> Iterator[SystemCheck]:
    """Yield the checks of an engine, from its executable to a kernel that runs in it."""
    if why := device.profile.unsupported or device.engine.missing():
        yield SystemCheck("engine", "fail", why, "docs/guides/browsers.md tells how")
        return
    yield SystemCheck("engine", "ok", str(device.engine.describe()["engine"]))
    found = linker()
    if found is None:
        yield SystemCheck("linker", "fail", MISSING, "pip install 'dlas[web]'")
        return
    yield SystemCheck("linker", "ok", " ".join(Path(part).name for part in found))
    try:
        engine = device.started()
    except PointError as error:
        yield SystemCheck("start", "fail", str(error), "start it by hand, and see what it says")
        return
    yield SystemCheck("start", "ok", "it starts, and ends with this process")
    try:
        yield kernel(device, engine)
        yield clock(engine.clock_step_s())
    finally:
        engine.close()


def kernel(device: WebAssemblyEngine, engine: Engine) -> SystemCheck:
    """Run a kernel of multiply-adds, with vectors as the device's options say."""
    from tvm import s_tir, te

    a, b, c = (te.placeholder((NUMBERS,), name=name) for name in "abc")
    result = te.compute((NUMBERS,), lambda i: a[i] * b[i] + c[i], name="result")
    schedule = s_tir.Schedule(te.create_prim_func([a, b, c, result]))
    (loop,) = schedule.get_loops(schedule.get_sblock("result"))
    schedule.vectorize(schedule.split(loop, [None, 4])[1])
    draw = np.random.default_rng(0)
    arrays = [draw.standard_normal(NUMBERS).astype(np.float32) for _ in range(4)]
    name = "relaxed vectors" if device.relaxed_simd else "vectors"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        module = write_kernel(schedule.mod["main"], device.target(), folder)
        try:
            engine.load(module, folder / CODE, folder / PARAMETERS)
            for tensor, array in zip(module.inputs, arrays, strict=False):
                engine.write(tensor, array)
            engine.run(1)
            output = engine.read(module.output)
        except (PointError, EngineFailed) as error:
            advice = "take a newer engine, or set relaxed_simd = false"
            return SystemCheck(name, "fail", str(error), advice)
    if not np.allclose(output, arrays[0] * arrays[1] + arrays[2], rtol=1e-5, atol=1e-6):
        return SystemCheck(name, "fail", "a kernel of multiply-adds is wrong", "take another engine")
    return SystemCheck(name, "ok", "a kernel of multiply-adds is right")


def clock(step_s: float) -> SystemCheck:
    """Judge the steps of the engine's clock."""
    finding = f"steps of {step_s * 1e6:.2g} µs"
    if step_s > FINE_S:
        return SystemCheck("clock", "warn", finding, "fast networks are timed over many inferences a sample")
    return SystemCheck("clock", "ok", finding)
