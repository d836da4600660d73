"""From points to rows: which steps a point needs, what runs when, and the row at its end."""
