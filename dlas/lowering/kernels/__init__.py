"""Kernels of convolutions and linear layers: their operators, layouts and algorithms."""

from dlas.lowering.kernels.kernel import schedule_kernel

__all__ = ["schedule_kernel"]
