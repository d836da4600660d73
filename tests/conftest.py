"""Settings that must stand before TVM is imported."""

from __future__ import annotations

import os

import pytest

# TVM pins the main thread, and what PyTorch starts later would share its core.
os.environ.setdefault("TVM_BIND_THREADS", "0")
os.environ.setdefault("TVM_NUM_THREADS", "2")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes golden files anew."""
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written anew."""
    return bool(request.config.getoption("--update-golden"))
