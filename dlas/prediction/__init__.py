"""Predictors of latency and memory: what they are made of, and how they are fitted to rows."""
