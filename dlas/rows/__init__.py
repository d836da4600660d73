"""Rows: written by sweeps, read as a table."""
