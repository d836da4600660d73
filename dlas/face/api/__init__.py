"""The Python interface, which ``dlas`` itself exports; the command line is a layer over it.

- ``running``: run a study
- ``results``: tables, comparisons and reports of its rows
"""
