"""From a network to TIR kernels: convolutions and linear layers, and everything else on one schedule.

importing -> simplify -> reshapes -> regions, tail -> convolutions, products -> lower -> pooling,
layout_changes, attention, operators
"""
