"""Loop transformations that the dense algorithms share."""
