"""Tuning: search for fast schedules of a network's convolutions, and remember what was found.

interface: what a compiler that tunes adds to the stack
workload -> search, rules -> workers, bench -> records -> choosing -> tuner
"""
