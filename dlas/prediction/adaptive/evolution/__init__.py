"""Evolutionary search in what a study draws: the best score whose costs keep their bounds.

:mod:`evolution` is the algorithm, :mod:`space` what candidates are made from, :mod:`estimators` where costs
and scores are from; :mod:`strategy` goes from the first generation to the winners; :mod:`record` is
``search.json``, and :mod:`identities` tells there which estimators were asked.
"""
