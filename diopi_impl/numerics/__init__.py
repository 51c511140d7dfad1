"""The arithmetic that a vendor declares: which deviations from IEEE 754 its results may show."""

from diopi_impl.numerics.declaration import IEEE, ErrorBound, Numerics
from diopi_impl.numerics.elementary import ELEMENTARY_FUNCTIONS

__all__ = ["ELEMENTARY_FUNCTIONS", "IEEE", "ErrorBound", "Numerics"]
