"""What ``dlas`` exports to Python: ``studies``, ``rows``, ``predictors``."""
