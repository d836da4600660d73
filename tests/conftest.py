"""Settings that must stand before TVM is imported."""

from __future__ import annotations

import os

# TVM pins the main thread, and what PyTorch starts later would share its core.
os.environ.setdefault("TVM_BIND_THREADS", "0")
os.environ.setdefault("TVM_NUM_THREADS", "2")
