"""The atlas: one page of HTML with every row of many studies, to filter, sort and take away as CSV."""
