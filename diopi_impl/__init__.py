"""Vendors implement the standard. `Vendor` defines a vendor in Python, `find_vendor` finds a vendor by name."""

from diopi_impl.base import BaseVendor, Box, OperatorOverride, OperatorUse, Waiver
from diopi_impl.claims import Claim
from diopi_impl.errors import UnsupportedDtypeError, VendorError, VendorNotFoundError
from diopi_impl.numerics import IEEE, ErrorBound, Numerics, NumericsError, find_numerics
from diopi_impl.plugins import find_vendor, known_vendors
from diopi_impl.vendor import Vendor

__all__ = [
    "IEEE",
    "BaseVendor",
    "Box",
    "Claim",
    "ErrorBound",
    "Numerics",
    "NumericsError",
    "OperatorOverride",
    "OperatorUse",
    "UnsupportedDtypeError",
    "Vendor",
    "VendorError",
    "VendorNotFoundError",
    "Waiver",
    "find_numerics",
    "find_vendor",
    "known_vendors",
]
