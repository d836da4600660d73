"""Drivers: how programs run and are timed on a kind of device, one file each."""
