"""The name of the device, and the environment variables that configure it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection
from pathlib import Path

from lib_rt.device_runtime import find_device_runtime

NAME = "diopi"
"""The name of the device in PyTorch."""

VENDOR = "DIOPI_TORCH_VENDOR"
"""Names the vendor in a form that `diopi_impl.plugins.find_vendor` accepts; the default is `DEFAULT_VENDOR`."""

RUNTIME = "DIOPI_TORCH_RUNTIME"
"""Names the library with the vendor's device runtime and collectives; by default, the vendor's library may have them.

With the value `reference`, the device uses those of the built-in device.
"""

DEFAULT_VENDOR = "jax_cpu"
"""The vendor of the device if the program and the environment name none."""

FORCE_FALLBACK = "DIPU_FORCE_FALLBACK_OPS_LIST"
"""Selects operators that always run on the CPU."""

FALLBACK_FILE = Path(".dipu_force_fallback_op_list.config")
"""A file in the working directory that selects further operators that always run on the CPU."""

KEEP_DEFAULT = "DIPU_KEEP_TORCHOP_DEFAULT_IMPL_OPS"
"""Selects operators that PyTorch composes of other operators although the device has a kernel for them."""

SYNCHRONOUS = "DIPU_SYNC_EXEC_MODE"
"""A switch: lets each operator wait until the device has performed it."""

LOG_FALLBACK = "DIPU_LOG_FALLBACK_INFO"
"""A switch: prints the operators that run on the CPU, with the reason."""

DEVICE_STRATEGY = "DIPU_DEVICE_MEMCACHING_ALGORITHM"
"""Names the strategy by which the memory of the device is cached: TORCH, BF, BS or RAW."""

HOST_STRATEGY = "DIPU_HOST_MEMCACHING_ALGORITHM"
"""Names the strategy by which pinned memory is cached."""

ALLOCATOR_OPTIONS = "DIPU_TORCH_ALLOCATOR_CONF"
"""The options of the strategy TORCH, such as `max_split_size_mb:128`."""

MEMORY_CHECK = "DIPU_MEM_CHECK"
"""A switch: reports memory that is still in use when the device is closed, and raises an error if it is freed twice."""

BLOCKING_WAIT = "DICL_BLOCKING_WAIT"
"""A switch: lets `wait` of a collective of the vendor wait on the host."""

CPU_AFFINITY = "DIPU_CPU_AFFINITY"
"""A switch: divides the CPUs of the machine among the processes that a launcher such as `torchrun` started."""

AUTOCOMPARE = "DIPU_AUTOCOMPARE_OPS_LIST"
"""Selects operators that are compared with the CPU from the start of the process."""

WATCH = "DIPU_WATCH"
"""Starts a watch with the process; its value is the time for judging, such as `100%`."""

MOCK_CUDA = "DIPU_MOCK_CUDA"
"""A switch: lets "cuda" mean the device, see `diopi_torch.as_cuda`."""

REPORT_CUDA = "DIPU_PYTHON_DEVICE_AS_CUDA"
"""A switch: lets tensors on the device report the device "cuda", see `diopi_torch.as_cuda`."""


class SettingError(ValueError):
    """An environment variable or option has an invalid value; the message names both."""


def vendor_name() -> str:
    """Return the name of the vendor in the environment, or the default."""
    return os.environ.get(VENDOR) or DEFAULT_VENDOR


def runtime_library() -> Path | None:
    """Return the path of the library with the device runtime that the environment names; None if it names none."""
    named = os.environ.get(RUNTIME)
    if not named:
        return None
    return find_device_runtime() if named == "reference" else Path(named)


def selected_operators(variable: str, known: Collection[str]) -> frozenset[str]:
    """Return the operators among `known` that an environment variable selects; see `matching_operators`."""
    return matching_operators(variable, os.environ.get(variable, ""), known)


def forced_expressions() -> list[str]:
    """Return the regular expressions of `FORCE_FALLBACK`, and of `FALLBACK_FILE`, whose lines have the same form."""
    texts = [os.environ.get(FORCE_FALLBACK, "")]
    if FALLBACK_FILE.is_file():
        texts += FALLBACK_FILE.read_text("utf-8").splitlines()
    return split_list(",".join(texts))


def split_list(text: str) -> list[str]:
    """Return the entries of a list separated by commas, without spaces around them and without empty ones."""
    return [entry for entry in map(str.strip, text.split(",")) if entry]


def is_switched_on(variable: str) -> bool:
    """Return whether the environment turns a switch on; raise SettingError if its value is not that of a switch."""
    return parse_switch(variable, os.environ.get(variable, ""))


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
    for text in split_list(choice):
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
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text.strip())
    if match is None:
        raise SettingError(f"{source}: expected a percentage such as 20%, or unlimited, found {text!r}")
    return float(match[1]) / 100


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
    word = text.strip().lower()
    if word not in values:
        raise SettingError(f"{variable}: expected 1, true, on, 0, false or off, found {text!r}")
    return values[word]
