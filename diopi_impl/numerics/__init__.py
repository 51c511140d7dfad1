"""The arithmetic that a vendor declares: which deviations from IEEE 754 its results may show."""

from diopi_impl.numerics.declaration import IEEE, ErrorBound, Numerics
from diopi_impl.numerics.elementary import ELEMENTARY_FUNCTIONS
from diopi_impl.numerics.reading import (
    find_numerics,
    read_numerics,
    read_numerics_of_library,
    shipped_names,
    shipped_numerics,
)
from diopi_impl.numerics.validation import NumericsError
from diopi_impl.numerics.writing import to_toml

__all__ = [
    "ELEMENTARY_FUNCTIONS",
    "IEEE",
    "ErrorBound",
    "Numerics",
    "NumericsError",
    "find_numerics",
    "read_numerics",
    "read_numerics_of_library",
    "shipped_names",
    "shipped_numerics",
    "to_toml",
]
