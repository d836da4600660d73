"""Predictors, each file one part."""
