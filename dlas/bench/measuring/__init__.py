"""Measuring on this machine: its description, its disturbances, latency samples and memory."""
