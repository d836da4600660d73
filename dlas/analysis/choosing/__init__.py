"""Choose from rows: the algorithm of each layer."""
