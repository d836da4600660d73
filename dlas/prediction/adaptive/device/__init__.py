"""A predictor for a device, from nothing: rounds of drawn networks, each those that teach it most.

:mod:`strategy` goes from the first networks to those that are never fitted; :mod:`studies` says what is
drawn, :mod:`committee` what teaches most, :mod:`budget` how minutes are spent, :mod:`lines` what is
said; :mod:`record` is ``device.json``.
"""
