"""A network as one page of HTML: its code, its weights and all that runs them in a browser."""

SUFFIX = ".html"
"""How the name of a page ends."""
