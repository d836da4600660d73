"""Measurements against peers; never pass or fail."""
