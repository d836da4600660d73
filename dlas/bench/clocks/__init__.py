"""Clocks of processors, GPU and memory: what they can be set to, setting them, and putting them back."""
