"""Learning from rows: features, splits by group, metrics, intervals, and fitted predictors as folders."""
