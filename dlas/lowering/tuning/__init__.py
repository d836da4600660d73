"""Tuning: search for fast schedules of a network's convolutions, and record every trial.

- ``workload``: a kernel as tuning sees it; ``identity``: the key of its records
- ``records``, ``record_files``, ``exchange``: recorded trials, on disk and between machines
- ``own_space``, ``rules``: proposers of candidates
- ``candidates``: building, checking and timing candidates in a worker; ``local_runner`` on this machine,
  ``board_runner`` in a session on a board
- ``measurers``: the workers of a search, and which of them may run at a time
- ``search``, ``selection``: one workload's trials, and the selected one
- ``tuner``: all workloads of a network
"""
