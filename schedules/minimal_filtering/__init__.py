"""Winograd's minimal filtering algorithms: their matrices, and how their tiles share registers and caches."""
