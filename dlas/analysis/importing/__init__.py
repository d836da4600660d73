"""Rows from elsewhere: a table of measurements, CSV or Parquet, becomes the rows of a folder.

- ``tables``: the cells of a file, within bounds
- ``columns``: what its columns mean, and their units
- ``values``: the values of cells
- ``points``: the points that the cells of a line name
- ``rows``: the rows of a table, and the folder that they are written to
"""
