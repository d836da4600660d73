"""Code shared by data sets of small images: files of pixels, and how training images are varied."""
