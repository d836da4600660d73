"""Flexible networks: a frozen network with shallow phases beside its own, of which a path chooses."""
