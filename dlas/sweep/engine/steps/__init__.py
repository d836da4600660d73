"""The steps of a point, one file each; each runs in a separate process, with JSON in and out.

network -> [compress ...] -> [tune] -> build -> memory -> check -> [count] -> measure

A step's code is part of the key of its artifact; the code of ``memory``, ``check``, ``count`` and
``measure``, of the row's key.
"""
