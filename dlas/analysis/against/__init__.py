"""Two runs of the same points against each other: what became slower, what faster, and why.

pairs -> noise -> changes
"""
