"""Choosing from rows: the fastest algorithm of each layer."""
