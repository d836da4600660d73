"""Code shared by data sets of image files: reading and splitting them, and how training images are varied."""
