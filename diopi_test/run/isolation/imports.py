"""Imports of the fork server before it forks, so that no case spends its time limit on an import."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from diopi_proto.families import load_families


def import_validators() -> None:
    """Import the validators of all families."""
    load_families("diopi_test.oracle.validators")


@cache
def import_references() -> None:
    """Import the references and cases of all families, which draw the inputs of a level that does not store them."""
    import_module("diopi_test.baseline.regeneration")
    for package in ("diopi_test.cases", "diopi_test.oracle.reference"):
        load_families(package)
