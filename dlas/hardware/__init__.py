"""Devices: the profiles that describe them, and the drivers that profiles name."""
