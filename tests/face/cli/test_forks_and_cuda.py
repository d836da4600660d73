"""The command line forks what runs its steps, and no fork can use CUDA once its parent has."""

from __future__ import annotations

import subprocess
import sys

import pytest

COUNTED = """
import os, sys
import torch

def used():
    os.write(2, b"torch has used CUDA")
    os._exit(3)

torch._C._cuda_getDeviceCount = used  # where NVIDIA's driver answers, it is not needed
torch.cuda._device_count_nvml = lambda: 1

from dlas.face.cli.app import app, run_command

@app.command("count")
def count() -> None:
    import tvm

    sys.exit(0 if torch.cuda.is_available() else 4)

sys.argv = ["dlas", "count"]
run_command()
"""


@pytest.mark.slow
def test_importing_tvm_counts_gpus_without_cuda() -> None:
    ended = subprocess.run([sys.executable, "-c", COUNTED], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
