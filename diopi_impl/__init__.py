"""Vendors: what implements the standard. `Vendor` makes one in Python, `find_vendor` finds one by name."""

from diopi_impl.base import BaseVendor, Box, Waiver
from diopi_impl.claims import Claim
from diopi_impl.errors import UnsupportedDtypeError, VendorError, VendorNotFoundError
from diopi_impl.plugins import find_vendor, known_vendors
from diopi_impl.vendor import Vendor

__all__ = [
    "BaseVendor",
    "Box",
    "Claim",
    "UnsupportedDtypeError",
    "Vendor",
    "VendorError",
    "VendorNotFoundError",
    "Waiver",
    "find_vendor",
    "known_vendors",
]
