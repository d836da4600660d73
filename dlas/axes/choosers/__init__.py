"""Algorithms that choose another algorithm for each convolution, one file each."""
