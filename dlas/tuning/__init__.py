"""Tuning: search for fast schedules of a network's convolutions, and record every trial.

- ``workload``: a kernel as tuning sees it; ``identity``: the key of its records
- ``records``, ``record_files``, ``exchange``: what was tried, on disk and between machines
- ``own_space``, ``rules``: where candidates come from
- ``candidates``: what a worker does with a candidate
- ``search``, ``selection``: one workload's trials, and the one to build with
- ``tuner``: all workloads of a network
"""
