"""Contracts that every part is held to, ours and those of others."""
