"""The arithmetic that a vendor declares: which deviations from IEEE 754 its results may show."""

from diopi_impl.numerics.declaration import IEEE, ErrorBound, Numerics

__all__ = ["IEEE", "ErrorBound", "Numerics"]
