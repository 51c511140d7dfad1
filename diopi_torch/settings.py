"""The name of the device, and the environment variables that configure it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection

NAME = "diopi"
"""The name of the device in PyTorch."""

VENDOR = "DIOPI_TORCH_VENDOR"
"""Names the vendor in a form that `diopi_impl.plugins.find_vendor` accepts; the default is `DEFAULT_VENDOR`."""

DEFAULT_VENDOR = "jax_cpu"
"""The vendor of the device if the program and the environment name none."""

FORCE_FALLBACK = "DIPU_FORCE_FALLBACK_OPS_LIST"
"""Selects operators that always run on the CPU."""

AUTOCOMPARE = "DIPU_AUTOCOMPARE_OPS_LIST"
"""Selects operators that are compared with the CPU from the start of the process."""

WATCH = "DIPU_WATCH"
"""Starts a watch with the process; its value is the time for judging, such as `100%`."""

MOCK_CUDA = "DIPU_MOCK_CUDA"
"""A switch: lets "cuda" mean the device, see `diopi_torch.as_cuda`."""


class SettingError(ValueError):
    """An environment variable or option has an invalid value; the message names both."""


def vendor_name() -> str:
    """Return the name of the vendor in the environment, or the default."""
    return os.environ.get(VENDOR) or DEFAULT_VENDOR


def selected_operators(variable: str, known: Collection[str]) -> frozenset[str]:
    """Return the operators among `known` that an environment variable selects; see `matching_operators`."""
    return matching_operators(variable, os.environ.get(variable, ""), known)


def matching_operators(source: str, choice: str, known: Collection[str]) -> frozenset[str]:
    """Return the operators that a list of regular expressions selects.

    Args:
        source: Name of the setting that has the list, for error messages.
        choice: Regular expressions separated by commas. Each must match the whole name of an operator, including the
            overload but without `aten::`. Spaces around an expression are ignored.
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


def parse_overhead(source: str, text: str) -> float:
    """Return the time for judging relative to the time of the program: infinity for `unlimited`.

    Args:
        source: Name of the setting, for error messages.
        text: A percentage such as `20%`, or `unlimited`.

    Returns:
        The relative time.

    Raises:
        SettingError: The text has another form.
    """
    if text.strip() == "unlimited":
        return math.inf
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text.strip())
    if found is None:
        raise SettingError(f"{source}: expected a percentage such as 20%, or unlimited, found {text!r}")
    return float(found[1]) / 100


def parse_switch(variable: str, text: str) -> bool:
    """Return whether the value of a switch turns it on; upper case is accepted, and an empty value means off.

    Args:
        variable: Name of the environment variable, for error messages.
        text: Its value, such as `1` or `false`.

    Returns:
        Whether the switch is on.

    Raises:
        SettingError: The text has another form.
    """
    values = {"1": True, "true": True, "on": True, "": False, "0": False, "false": False, "off": False}
    known = text.strip().lower()
    if known not in values:
        raise SettingError(f"{variable}: expected 1, true, on, 0, false or off, found {text!r}")
    return values[known]
