"""The steps of a point, one file each: run in a process of its own, with plain JSON in and out.

network -> [compress ...] -> [tune] -> build -> check -> measure

A step's code is part of the key of what it makes; that of ``check`` and ``measure``, of the row.
"""
