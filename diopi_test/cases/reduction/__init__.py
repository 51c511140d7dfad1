"""Cases of reductions along axes, and of running sums.

Importing the package registers the cases of all its modules.
"""

from diopi_test.cases.reduction import extrema, sums

__all__ = ["extrema", "sums"]
