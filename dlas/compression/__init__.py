"""Compression techniques, one file each; the file's name is the part's name.

A folder holds what several techniques share.
"""
