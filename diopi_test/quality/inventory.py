"""An inventory of the standard functions: reference, cases and vendors of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from diopi_impl import BaseVendor, VendorError, find_vendor, known_vendors
from diopi_proto.interface import header_of, prototypes
from diopi_proto.prototype import Prototype
from diopi_test.cases.selection import INDEPENDENT_LEVELS, select_cases
from diopi_test.oracle.reference import find_reference


def list_functions(wanted: Callable[[Prototype], bool] = lambda prototype: True) -> list[dict[str, Any]]:
    """Return a record for each function that `wanted` selects, in header order.

    Args:
        wanted: selects the functions by prototype.

    Returns:
        Records with these keys:

        - `function`, `header` and `family`: names.
        - `reference`: whether the function has a reference.
        - `cases`: the number of cases, by level.
        - `vendors`: whether the vendor implements the function, by the name of each installed vendor.
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
    """Return the registered vendors that can be loaded, by name; omit vendors whose dependencies are missing."""
    vendors = {}
    for name in sorted(known_vendors()):
        try:
            vendors[name] = find_vendor(name)
        except VendorError:
            continue
    return vendors
