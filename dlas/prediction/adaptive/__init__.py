"""Adaptive measuring: a loop asks a strategy what to measure next, measures it, and tells the strategy."""
