"""Compression techniques, one file each; the file's name is the part's name.

Folders hold code that several techniques share.
"""
