"""The machine at hand: what it is, what disturbs it, and how samples are taken on it."""
