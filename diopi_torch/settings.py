"""The device's name, and what the environment says: the vendor, and operators chosen by name."""

from __future__ import annotations

import os
import re
from collections.abc import Collection

NAME = "diopi"
"""What PyTorch calls the device."""

VENDOR = "DIOPI_TORCH_VENDOR"
"""Names the vendor, as `diopi_impl.plugins.find_vendor` takes it; `DEFAULT_VENDOR` if it is not set."""

DEFAULT_VENDOR = "jax_cpu"

FORCE_FALLBACK = "DIPU_FORCE_FALLBACK_OPS_LIST"
"""Operators that run on the CPU whatever the vendor has."""


AUTOCOMPARE = "DIPU_AUTOCOMPARE_OPS_LIST"
"""Operators that are compared with the CPU from the beginning."""


class SettingError(ValueError):
    """A variable of the environment has a value that means nothing; the message names both."""


def vendor_name() -> str:
    """The vendor that the environment names."""
    return os.environ.get(VENDOR) or DEFAULT_VENDOR


def chosen_operators(variable: str, known: Collection[str]) -> frozenset[str]:
    """The operators among `known` that a variable of the environment chooses, as `matching_operators` has it."""
    return matching_operators(variable, os.environ.get(variable, ""), known)


def matching_operators(where: str, choice: str, known: Collection[str]) -> frozenset[str]:
    """The operators among `known` that are chosen: by regular expressions, with commas between them.

    Each must match the whole name of an operator, overload included, without `aten::`; spaces around it don't count.
    SettingError, which begins with `where` they were given, for one that is no regular expression, or matches no
    operator.
    """
    chosen: set[str] = set()
    for text in filter(None, map(str.strip, choice.split(","))):
        try:
            expression = re.compile(text)
        except re.error as error:
            raise SettingError(f"{where}: {text!r} is no regular expression: {error}") from None
        matching = {name for name in known if expression.fullmatch(name)}
        if not matching:
            raise SettingError(f"{where}: {text!r} matches the whole name of no operator, such as add.Tensor or mm")
        chosen |= matching
    return frozenset(chosen)
