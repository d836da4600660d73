"""What the site makes from the source when it is built: the gallery, the reference, and pages of the root."""
