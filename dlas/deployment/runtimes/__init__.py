"""Runtimes of deployed networks, one file each; a folder gets a copy of its own as ``program.py``."""
