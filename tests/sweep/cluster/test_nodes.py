"""What machines of a cluster have in common: the code of this package, wherever it lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlas.bench.store import fingerprint
from dlas.errors import InputError
from dlas.sweep.cluster.nodes import ClusterNode, check_offered, code


def test_all_code_and_all_profiles_count(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()

    def digests(paths: list[Path]) -> dict[str, str]:
        seen.update(f"{path.parent.name}/{path.name}" for path in paths)
        return {str(path): "" for path in paths}

    monkeypatch.setattr(fingerprint, "file_digests", digests)
    code()
    assert {"schedules/direct.py", "sparse/csr_direct.py", "engine/sweep.py"} <= seen
    assert "hardware_profiles/local_cpu.toml" in seen


def test_another_content_is_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    before = code()
    monkeypatch.setattr(fingerprint, "file_digests", lambda paths: {str(path): "other" for path in paths})
    differ = [name for name, value in code().items() if before[name] != value]
    assert differ == ["code"]


def test_hardware_that_nobody_offers_is_refused() -> None:
    nodes = [ClusterNode("1", "here", 2, ("local_cpu",)), ClusterNode("2", "there", 2, ())]
    check_offered(["local_cpu"], nodes)
    with pytest.raises(InputError, match=r"offers 'board' \(offered: local_cpu\); .*\"dlas:board\": 1"):
        check_offered(["board", "local_cpu"], nodes)
