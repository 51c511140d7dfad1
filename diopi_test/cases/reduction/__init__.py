"""Reductions along axes, and running sums."""

from diopi_test.cases.reduction import extrema, sums

__all__ = ["extrema", "sums"]
