"""What the environment says: the vendor, and operators chosen by name."""

from __future__ import annotations

import os
import re
from collections.abc import Collection

VENDOR = "DIOPI_TORCH_VENDOR"
"""Names the vendor, as `diopi_impl.plugins.find_vendor` takes it; `DEFAULT_VENDOR` if it is not set."""

DEFAULT_VENDOR = "jax_cpu"

FORCE_FALLBACK = "DIPU_FORCE_FALLBACK_OPS_LIST"
"""Operators that run on the CPU whatever the vendor has."""


class SettingError(ValueError):
    """A variable of the environment has a value that means nothing; the message names both."""


def vendor_name() -> str:
    """The vendor that the environment names."""
    return os.environ.get(VENDOR) or DEFAULT_VENDOR


def chosen_operators(variable: str, known: Collection[str]) -> frozenset[str]:
    """The operators among `known` that a variable chooses: regular expressions, with commas between them.

    Each must match the whole name of an operator, overload included, without `aten::`; spaces around it don't count.
    SettingError for one that is no regular expression, or matches no operator.
    """
    chosen: set[str] = set()
    for text in filter(None, map(str.strip, os.environ.get(variable, "").split(","))):
        try:
            expression = re.compile(text)
        except re.error as error:
            raise SettingError(f"{variable}: {text!r} is no regular expression: {error}") from None
        matching = {name for name in known if expression.fullmatch(name)}
        if not matching:
            raise SettingError(f"{variable}: {text!r} matches the whole name of no operator, such as add.Tensor or mm")
        chosen |= matching
    return frozenset(chosen)
