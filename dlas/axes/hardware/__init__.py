"""Devices: their profiles, and the drivers that run programs on them."""
