"""From a network to TIR: passes that :mod:`dlas.lowering.lower` lists, one a line, in this order.

On the network (``graph``)
    - ``importing``: read by TVM's importers
    - ``simplify``: weights in place, constants computed, batch norm as scale and shift
    - ``half_precision``: numbers of 16 bits in memory
    - ``quantised``: quantised numbers as arithmetic of integers
    - ``reshapes``: linear layers and what follows them on rows

From operators to loops (``kernels``)
    - ``regions``: what follows each convolution, which becomes its ``tail``
    - ``emitter``: ``main`` with the algorithm's kernels (``convolutions``), packed linear layers
      (``products``) and changed ``layouts``
    - ``fusing``: all other operators as loops, fused by TVM
    - ``described``: what each kernel computes, for rows

From loops to schedules
    - ``kernels.kernel``: kernels by their own design spaces
    - ``operators.layout_changes``, ``operators.pooling``, ``kernels.attention``: rules for these alone
    - ``operators.schedule``: the common schedule of all others

``graph.graph`` has the network as bindings and the questions that passes ask of it, ``graph.rewriter`` what
passes share that write it anew; ``tuning`` searches for schedules of kernels.
"""
