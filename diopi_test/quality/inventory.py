"""What there is for every standard function: reference, cases, vendors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from diopi_impl import BaseVendor, VendorError, find_vendor, known_vendors
from diopi_proto.interface import header_of, prototypes
from diopi_proto.prototype import Prototype
from diopi_test.cases.selection import INDEPENDENT_LEVELS, select_cases
from diopi_test.oracle.reference import find_reference


def inventory(wanted: Callable[[Prototype], bool] = lambda prototype: True) -> list[dict[str, Any]]:
    """A record for each function that is wanted, in header order.

    Its keys are function, header, family, reference, cases (by level) and vendors (by name).
    """
    vendors = _installed_vendors()
    return [
        {
            "function": name,
            "header": header_of(name),
            "family": prototype.family,
            "reference": find_reference(name) is not None,
            "cases": {level: len(select_cases(name, level)) for level in INDEPENDENT_LEVELS},
            "vendors": {vendor: implementation.has(name) for vendor, implementation in vendors.items()},
        }
        for name, prototype in prototypes().items()
        if wanted(prototype)
    ]


def _installed_vendors() -> dict[str, BaseVendor]:
    """The registered vendors that can be loaded: one whose package lacks something has no column."""
    vendors = {}
    for name in sorted(known_vendors()):
        try:
            vendors[name] = find_vendor(name)
        except VendorError:
            continue
    return vendors
