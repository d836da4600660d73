"""Compilers and runtimes, one file each; the file's name is the part's name."""
