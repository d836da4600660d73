"""Kernels of convolutions and linear layers: their operators, layouts and algorithms."""
