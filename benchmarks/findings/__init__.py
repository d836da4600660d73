"""``docs/findings.md``: what is known from the rows that are kept, beside what the papers say.

Verdicts are computed from rows.  Numbers of headlines are those of READMEs, which
:mod:`benchmarks.recomputed` recomputes from rows; what a paper says is a constant with its place.
"""
