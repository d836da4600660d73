"""Observers: what is watched while samples are taken, one file each.

Each is called before and after a slice of samples, and some in between, on the machine that the
program runs on.  :data:`dlas.bench.measuring.observers.watch.OBSERVERS` lists them.
"""
