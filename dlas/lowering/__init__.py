"""From a network to TIR kernels: every convolution the algorithm's own, everything else on one schedule.

importing -> simplify -> regions, tail -> kernels -> lower -> pooling, layout_changes, operators
"""
