"""Tuning: search for fast schedules of a network's convolutions, and record every trial.

- ``workload``: a kernel as tuning sees it; ``identity``: the key of its records
- ``records``, ``record_files``, ``exchange``: recorded trials, on disk and between machines
- ``own_space``, ``rules``: proposers of candidates
- ``candidates``: building, checking and timing candidates in a worker
- ``search``, ``selection``: one workload's trials, and the selected one
- ``tuner``: all workloads of a network
"""
