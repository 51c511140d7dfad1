"""Binary and ternary element-wise functions with their scalar forms, a module a subfamily."""

from diopi_test.cases.arithmetic import bounds, comparison, division, lists, powers, sums

__all__ = ["bounds", "comparison", "division", "lists", "powers", "sums"]
