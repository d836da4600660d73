"""A share of a study's points, chosen well, that stands for all of them.

:mod:`space` describes points by the values of the axes that vary, :mod:`trends` by what latencies usually
grow with; :mod:`covariance` says how alike the latencies of two points are, :mod:`process` is the Gaussian
process over them, :mod:`belief` what a measurement would change; :mod:`choosing` picks points, :mod:`tallies`
counts what became of them, and :mod:`share` goes from the first share to the last.
"""
