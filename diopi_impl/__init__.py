"""Vendors: what implements the standard. `Vendor` describes one, `find_vendor` finds one by name."""

from diopi_impl.errors import UnsupportedDtypeError, VendorError
from diopi_impl.plugins import find_vendor, known_vendors
from diopi_impl.vendor import Box, Vendor, Waiver

__all__ = ["Box", "UnsupportedDtypeError", "Vendor", "VendorError", "Waiver", "find_vendor", "known_vendors"]
