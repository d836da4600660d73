"""The numbers of the studies' READMEs, recomputed from the rows that are kept beside them.

A comment in a README says where a number comes from, and draws nothing::

    <!-- = speeds -->                   above a table: the function of that name, called for each line
    <!-- measured: COMMAND -->          above a table: numbers of a command whose rows are not kept
    <!-- nothing measured -->          above a table whose numbers are names or counts
    29<!-- = gain(untuned, tuned) -->   after a number: a function, called with these words

The functions are in the module of the study's name: ``kernels`` for ``experiments/kernels``.  A README
may also name those of another study: ``precision.gain(...)``.
"""
