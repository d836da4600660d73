"""From points to rows: the steps that a point needs, their scheduling, and its row."""
