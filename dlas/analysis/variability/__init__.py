"""Boards of one model against each other: how they differ, which stands out, how many it takes to see more.

boards -> observed -> labels -> variability, with power beside them

References
----------
MIRAGE, section 3.1, Figures 2 and 3.
"""
