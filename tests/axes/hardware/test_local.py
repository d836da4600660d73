"""This machine, read from made-up trees, and its driver."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dlas.axes.hardware.drivers.local import Local
from dlas.axes.hardware.profile import Profile
from dlas.bench.measuring.machine import Machine
from dlas.stack import MeasureSettings
from dlas.sweep.study import parts
from tests.fixtures.profiles import write_profile

PROFILE = Profile.read(parts.PROFILES / "local_cpu.toml")


def tree(root: Path, files: dict[str, str]) -> Machine:
    """Return a machine whose /proc and /sys hold these files."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return Machine(root)


def intel(root: Path, allowed: str = "0-7", **more: str) -> Machine:
    """Return four cores of two threads each, n and n + 4, sharing a third-level cache."""
    files = {
        "proc/self/status": f"Name:\tpython\nCpus_allowed_list:\t{allowed}",
        "proc/cpuinfo": (
            "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 158\n"
            "model name\t: Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz\nstepping\t: 10\n"
            "flags\t\t: fpu sse4_2 avx avx2 fma smep\n\nprocessor\t: 1\nmodel name\t: another"
        ),
        "proc/meminfo": "MemTotal:       16384 kB\nMemFree:        1 kB",
        "proc/sys/kernel/osrelease": "6.1.0",
        "sys/devices/system/cpu/online": "0-7",
        "sys/devices/system/cpu/intel_pstate/no_turbo": "1",
    }
    for number in range(8):
        cpu = f"sys/devices/system/cpu/cpu{number}"
        pair = f"{number % 4},{number % 4 + 4}"
        files |= {
            f"{cpu}/topology/core_cpus_list": pair,
            f"{cpu}/cpufreq/scaling_governor": "performance",
            f"{cpu}/cpufreq/scaling_min_freq": "800000",
            f"{cpu}/cpufreq/scaling_max_freq": "3200000",
            f"{cpu}/cpufreq/cpuinfo_max_freq": "4600000",
        }
        caches = [
            ("1", "Data", "32K", pair),
            ("1", "Instruction", "32K", pair),
            ("3", "Unified", "12M", "0-7"),
        ]
        for index, (level, kind, size, shared) in enumerate(caches):
            folder = f"{cpu}/cache/index{index}"
            files |= {f"{folder}/level": level, f"{folder}/type": kind, f"{folder}/size": size}
            files[f"{folder}/shared_cpu_list"] = shared
    return tree(root, files | more)


def hikey(root: Path) -> Machine:
    """Return four little cores, then four big ones."""
    cpus = [(number, "0xd03", 462) for number in range(4)] + [
        (number, "0xd09", 1024) for number in range(4, 8)
    ]
    entries = [
        f"processor\t: {number}\nFeatures\t: fp asimd crc32\nCPU implementer\t: 0x41\n"
        f"CPU architecture: 8\nCPU part\t: {part}"
        for number, part, _ in cpus
    ]
    files = {"proc/self/status": "Cpus_allowed_list:\t0-7", "proc/cpuinfo": "\n\n".join(entries)}
    files |= {f"sys/devices/system/cpu/cpu{number}/cpu_capacity": str(speed) for number, _, speed in cpus}
    return tree(root, files)


# ---------------------------------------------------------------- the machine


def test_a_machine_is_described_in_full(tmp_path: Path) -> None:
    found = intel(tmp_path).describe()
    found.pop("architecture")
    assert found == {
        "cpu": "Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz",
        "vendor": "GenuineIntel",
        "family": "6",
        "model": "158",
        "stepping": "10",
        "physical_cores": 4,
        "logical_cores": 8,
        "allowed_cores": 4,
        "quota_cores": None,
        "l1d_bytes": 4 * 32768,
        "l1i_bytes": 4 * 32768,
        "l2_bytes": None,
        "l3_bytes": 12 * 2**20,
        "extensions": ["avx", "avx2", "fma", "sse4_2"],
        "memory_bytes": 2**24,
        "kernel": "6.1.0",
        "governor": "performance",
        "clock_min_hz": 0.8e9,
        "clock_max_hz": 3.2e9,
        "clock_limit_hz": 4.6e9,
        "boost": False,
        "hypervisor": False,
    }


def test_a_machine_that_shows_nothing_is_described_with_nulls(tmp_path: Path) -> None:
    found = Machine(tmp_path).describe()
    assert found["physical_cores"] >= 1
    unknown = ("cpu", "vendor", "l1d_bytes", "memory_bytes", "governor", "boost", "hypervisor", "quota_cores")
    assert {found[name] for name in unknown} == {None}
    assert found["extensions"] == []


def test_this_machine_can_be_described() -> None:
    found = Machine().describe()
    assert found["physical_cores"] >= found["allowed_cores"] >= 1
    assert json.loads(json.dumps(found)) == found


def test_affinity_counts_cores_not_their_threads(tmp_path: Path) -> None:
    machine = intel(tmp_path, allowed="0,4,1")
    assert machine.cores() == [(0, 4), (1,)]
    assert machine.most_threads() == 2
    assert machine.describe()["physical_cores"] == 4


def test_big_cores_come_first(tmp_path: Path) -> None:
    machine = hikey(tmp_path)
    assert machine.cores()[:4] == [(4,), (5,), (6,), (7,)]
    found = machine.describe()
    assert (found["vendor"], found["model"], found["hypervisor"]) == ("Arm", "0xd09", None)
    assert found["extensions"] == ["asimd"]


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"proc/self/cgroup": "0::/a/b", "sys/fs/cgroup/a/cpu.max": "150000 100000"}, 1.5),
        ({"proc/self/cgroup": "0::/a/b", "sys/fs/cgroup/a/b/cpu.max": "max 100000"}, None),
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "50000 100000"}, 0.5),
        (
            {
                "proc/self/cgroup": "3:cpu,cpuacct:/a\n0::/",
                "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "200000",
                "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "100000",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
            },
            2.0,
        ),
    ],
)
def test_control_groups_limit_the_threads(tmp_path: Path, files: dict[str, str], quota: float | None) -> None:
    machine = intel(tmp_path, **files)
    assert machine.quota() == quota
    assert machine.most_threads() == (4 if quota is None else max(1, int(quota)))


def test_control_groups_limit_the_memory(tmp_path: Path) -> None:
    machine = intel(tmp_path, **{"proc/self/cgroup": "0::/a", "sys/fs/cgroup/a/memory.max": "4096"})
    assert machine.memory_bytes() == 4096


def test_free_memory_is_what_new_processes_could_have(tmp_path: Path) -> None:
    files = {"proc/meminfo": "MemTotal:       16384 kB\nMemAvailable:   4096 kB"}
    assert tree(tmp_path / "told", files).free_memory() == 0.25
    assert tree(tmp_path / "silent", {}).free_memory() == 1


@pytest.mark.parametrize(
    "group",
    [
        {
            "proc/self/cgroup": "0::/a",
            "sys/fs/cgroup/a/memory.max": "1000",
            "sys/fs/cgroup/a/memory.current": "1000",
            "sys/fs/cgroup/a/memory.stat": "anon 800\ninactive_file 200",
        },
        {
            "proc/self/cgroup": "4:memory:/a",
            "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1000",
            "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "1000",
            "sys/fs/cgroup/memory/a/memory.stat": "inactive_file 100\ntotal_inactive_file 200",
        },
        {
            "proc/self/cgroup": "0::/a",
            "sys/fs/cgroup/a/memory.max": "max",
            "sys/fs/cgroup/a/memory.current": "1",
        },
    ],
)
def test_free_memory_is_what_control_groups_leave(tmp_path: Path, group: dict[str, str]) -> None:
    machine = {"proc/meminfo": "MemTotal: 16384 kB\nMemAvailable: 8192 kB"}
    unlimited = "max" in group.values()
    assert tree(tmp_path, machine | group).free_memory() == pytest.approx(0.5 if unlimited else 0.2)


def test_usage_counts_the_processors_asked_for(tmp_path: Path) -> None:
    lines = ["cpu  9 9 9 9 9 9 9 9 0 0", "cpu0 100 0 50 900 7 3 2 40 0 0", "cpu10 5 5 5 5 5 5 5 5 0 0"]
    usage = tree(tmp_path, {"proc/stat": "\n".join(lines)}).usage((0,))
    assert usage is not None
    assert usage.busy_s / usage.steal_s == pytest.approx(155 / 40)
    assert Machine(tmp_path / "absent").usage((0,)) is None


# ---------------------------------------------------------------- this machine's driver


@pytest.fixture
def quad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = intel(tmp_path)
    monkeypatch.setattr(Local, "machine", machine)
    return machine


def test_more_threads_than_cores_is_refused_quoting_both(quad: Machine) -> None:
    Local(PROFILE, threads=4).verify()
    with pytest.raises(ValueError, match="threads = 5, but this process may use 4 physical cores"):
        Local(PROFILE, threads=5).verify()


def test_threads_default_to_one_a_core(quad: Machine) -> None:
    assert Local(PROFILE).describe()["threads"] == 4
    assert Local(PROFILE, threads=2).describe()["threads"] == 2


def test_a_profile_may_override_what_llvm_says(quad: Machine, tmp_path: Path) -> None:
    path = write_profile(tmp_path, 'title = "x"\ndriver = "local"\n[target]\nkind = "llvm"\nmcpu = "haswell"')
    target = parts.make("hardware", str(path), {"threads": 3}).target()
    assert target.description == {"kind": "llvm", "mcpu": "haswell", "num-cores": 3}
    assert target.threads == 3


@pytest.mark.parametrize("kind", ["cuda", "opencl"])
def test_a_gpu_of_this_machine_is_unsupported(kind: str, quad: Machine, tmp_path: Path) -> None:
    path = write_profile(tmp_path, f'title = "x"\ndriver = "local"\n[target]\nkind = "{kind}"')
    device = parts.make("hardware", str(path), {})
    assert str(device.unsupported()).startswith(f"its target is {kind}, and driver = 'local' runs")
    assert Local(PROFILE).unsupported() is None


def test_measuring_runs_the_bound_program(quad: Machine) -> None:
    class Counting:
        runs = 0

        def bind(self, images: Any) -> Any:
            def run() -> None:
                self.runs += 1

            return run

    program = Counting()
    settings = MeasureSettings(repeats=2, slices=1, sample_seconds=1e-6)
    found = Local(PROFILE).measure(program, None, settings, lambda: None)  # type: ignore[arg-type]
    assert len(found["latency_s"]) == 2
    assert program.runs > 2


PREPARED = """
import json, os, sys
from pathlib import Path
from dlas.sweep.study import parts
device = parts.make("hardware", "local_cpu", {"threads": 1})
device.prepare()
import tvm
from dlas.axes.hardware.drivers.local import Local
from dlas.bench.measuring.machine import Machine
for name in parts.names("hardware"):
    tvm.target.Target(dict(parts.make("hardware", name, {}).target().description))
names = ("TVM_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "TVM_BIND_THREADS")
found = {
    "affinity": sorted(os.sched_getaffinity(0)),
    "environment": [os.environ[name] for name in names],
    "threads": tvm.runtime.num_threads(),
    "target": device.target().description,
}
Local.machine = Machine(Path(sys.argv[1]))
tvm.target.codegen.llvm_get_system_cpu = lambda: "skylake-avx512"
print(json.dumps({**found, "masked": device.target().description["mattr"]}))
"""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a process of its own finds once it is prepared: its settings would stay with this one."""
    root = tmp_path_factory.mktemp("tree")
    intel(root)
    command = [sys.executable, "-c", PREPARED, str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_a_prepared_process_runs_tvm_on_the_cores_asked_for(prepared: dict[str, Any]) -> None:
    assert prepared["affinity"] == [Machine().cores()[0][0]]
    assert prepared["environment"] == ["1", "1", "1", "0"]
    assert prepared["threads"] == 1
    assert prepared["target"]["kind"] == "llvm"
    assert prepared["target"]["num-cores"] == 1
    assert prepared["target"]["mcpu"]


def test_what_a_hypervisor_hides_is_switched_off(prepared: dict[str, Any]) -> None:
    assert {"-avx512f", "-avx512bw", "-f16c"} <= set(prepared["masked"])
    assert not {"-avx", "-avx2", "-fma"} & set(prepared["masked"])


def test_torch_follows_where_it_is_loaded(quad: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    class Torch:
        threads = 0

        def set_num_threads(self, threads: int) -> None:
            self.threads = threads

    torch, bound = Torch(), []
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr("os.sched_setaffinity", lambda pid, processors: bound.append(processors))
    for name in (
        "TVM_BIND_THREADS",
        *(f"{x}_NUM_THREADS" for x in ("TVM", "OMP", "MKL", "OPENBLAS", "NUMEXPR")),
    ):
        monkeypatch.setenv(name, "unset")
    Local(PROFILE, threads=3).prepare()
    assert torch.threads == 3
    assert bound == [[0, 1, 2]], "one logical processor of each core"
