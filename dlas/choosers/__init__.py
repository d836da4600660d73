"""Algorithms that compute nothing and leave every convolution to another one, one file each."""
