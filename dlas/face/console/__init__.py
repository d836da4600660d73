"""Printed output: tables, comparisons, listings."""
