"""Processes: the server that forks steps, their limits and outcomes, and pools of workers."""
