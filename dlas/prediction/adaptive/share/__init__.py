"""A share of a study's points, chosen well, that stands for all of them.

:mod:`space` describes points by the values of the axes that vary, :mod:`trends` by what latencies usually
grow with, and :mod:`work` by what their networks compute, which :mod:`multiply_adds` finds out;
:mod:`covariance` says how alike the latencies of two points are, :mod:`gaussian_process` is the process over
them, :mod:`posterior` what a measurement would change; :mod:`acquisition` picks points, :mod:`outcomes`
counts what became of them, :mod:`share` chooses batches and predicts the rest, and :mod:`strategy` is what
the loop asks.
"""
