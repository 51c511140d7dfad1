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


def matching_operators(source: str, choice: str, known: Collection[str]) -> frozenset[str]:
    """Return the operators that a list of regular expressions selects.

    Args:
        source: Name of the setting that has the list, for error messages.
        choice: Regular expressions separated by commas. Each must match the whole name of an operator, including the
            overload but without `aten::`. Spaces around an expression do not count.
        known: Names of all operators.

    Returns:
        The names that at least one expression matches.

    Raises:
        SettingError: A text is not a regular expression, or does not match an operator.
    """
    chosen: set[str] = set()
    for text in filter(None, map(str.strip, choice.split(","))):
        try:
            expression = re.compile(text)
        except re.error as error:
            raise SettingError(f"{source}: {text!r} is not a regular expression: {error}") from None
        matching = {name for name in known if expression.fullmatch(name)}
        if not matching:
            raise SettingError(
                f"{source}: {text!r} does not match the whole name of an operator, such as add.Tensor or mm"
            )
        chosen |= matching
    return frozenset(chosen)
