"""What fitted predictors consist of, as arrays in files: rates, trees, neighbours."""
