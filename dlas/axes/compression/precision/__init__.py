"""Code shared by techniques that change number types."""
