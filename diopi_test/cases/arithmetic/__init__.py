"""Cases of element-wise functions of two or three operands and of their scalar forms, one module per group.

A scalar form takes a number instead of the last tensor.
"""

from diopi_test.cases.arithmetic import bounds, comparison, division, kinds, lists, powers, sums

__all__ = ["bounds", "comparison", "division", "kinds", "lists", "powers", "sums"]
