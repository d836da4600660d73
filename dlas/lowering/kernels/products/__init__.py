"""Matrix products: linear layers, and products of two values that are known at run time only."""
