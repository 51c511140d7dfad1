"""An inventory of the standard functions: reference, cases and vendors of each, and all that is known of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from diopi_impl import BaseVendor, VendorError, find_vendor, known_vendors
from diopi_proto import description
from diopi_proto.families import family_conventions
from diopi_proto.headers import declaration
from diopi_proto.interface import header_of, lookup, prototypes
from diopi_proto.prototype import Prototype
from diopi_test.cases.selection import INDEPENDENT_LEVELS, LEVELS, select_cases
from diopi_test.oracle.reference import find_reference


def list_functions(is_selected: Callable[[Prototype], bool] = lambda prototype: True) -> list[dict[str, Any]]:
    """Return a record for each function that `is_selected` selects, in header order.

    Args:
        is_selected: returns whether to select the function with a prototype.

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
            "cases": {level: _count_cases(name, level) for level in INDEPENDENT_LEVELS},
            "vendors": {vendor: implementation.has(name) for vendor, implementation in vendors.items()},
        }
        for name, prototype in prototypes().items()
        if is_selected(prototype)
    ]


def describe_function(name: str) -> dict[str, Any]:
    """Return all that the standard and the suite state about a function.

    Args:
        name: the C name.

    Returns:
        A record with these keys:

        - `function`, `header`, `family`, `declaration` and `doc`: as in the header.
        - `conventions`: what holds for all functions of the family unless their `doc` says otherwise.
        - `parameters`: a record per parameter, see `diopi_proto.description.ParameterDescription`.
        - `results`: sentences about what is guaranteed.
        - `python`: the signature of a functional implementation; `implementation`: what it receives and returns.
        - `forms`, `gradient` and `aten`: the other forms, the function of the gradient or None, PyTorch's operators.
        - `cases`: the number of stored cases by level and class.
        - `vendors`: whether a vendor implements the function, by the name of each installed vendor.

    Raises:
        KeyError: if the standard has no such function; the message suggests similar names.
    """
    prototype = lookup(name)
    return {
        "function": name,
        "header": header_of(name),
        "family": prototype.family,
        "declaration": declaration(prototype),
        "doc": prototype.doc,
        "conventions": family_conventions(prototype.family),
        "parameters": [asdict(parameter) for parameter in description.describe_parameters(prototype)],
        "results": description.describe_results(prototype),
        "python": description.python_signature(prototype),
        "implementation": description.describe_implementation(prototype),
        "forms": description.other_forms(prototype),
        "gradient": prototype.backward,
        "aten": description.aten_operators(prototype),
        "cases": {level: _count_classes(name, level) for level in INDEPENDENT_LEVELS},
        "vendors": {vendor: loaded.has(name) for vendor, loaded in _installed_vendors().items()},
    }


def _count_cases(function: str, level: str) -> int:
    """Return the number of a function's cases at a level.

    At a level of networks, the traces determine the number: each traced call of the function is a case.
    """
    definition = LEVELS[level]
    return len(definition.depends_on(lookup(function)) if definition.models else select_cases(function, level))


def _count_classes(function: str, level: str) -> dict[str, int]:
    """Return the number of a function's stored cases at a level by class."""
    return dict(Counter(case.case_class.value for case in select_cases(function, level)))


def _installed_vendors() -> dict[str, BaseVendor]:
    """Return the registered vendors that can be loaded, by name; omit vendors whose dependencies are missing."""
    vendors = {}
    for name in sorted(known_vendors()):
        try:
            vendors[name] = find_vendor(name)
        except VendorError:
            continue
    return vendors
