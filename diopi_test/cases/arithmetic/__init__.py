"""Binary and ternary element-wise functions with their scalar forms, one module per subfamily."""

from diopi_test.cases.arithmetic import bounds, comparison, division, kinds, lists, powers, sums

__all__ = ["bounds", "comparison", "division", "kinds", "lists", "powers", "sums"]
