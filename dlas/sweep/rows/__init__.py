"""Rows: sweeps write them, and :func:`dlas.read` returns them as a table."""
