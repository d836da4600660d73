"""Datasets, one file each; the file's name is the part's name."""
