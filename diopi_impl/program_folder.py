"""The folder in which vendors may store the programs that they compile."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

import platformdirs

from diopi_impl.base import BaseVendor
from diopi_impl.plugins import known_vendors

VARIABLE = "DIOPI_PROGRAMS"
"""The environment variable with the folder, or `off`."""


def program_folder() -> Path | None:
    """Return the folder for stored programs: the value of `DIOPI_PROGRAMS`, or a folder in the user's cache.

    Returns:
        The folder; None if the variable has the value `off`.
    """
    setting = os.environ.get(VARIABLE, "")
    if setting == "off":
        return None
    if setting:
        return Path(setting).absolute()
    return platformdirs.user_cache_path("diopi", appauthor=False, version=version("diopi")) / "programs"


def store_programs(vendor: BaseVendor, name: str, since: float) -> None:
    """Let a registered vendor store its programs.

    A vendor that is passed as `module:attribute` may be a registered vendor whose functions were replaced, for example
    by a test. It stores nothing.

    Args:
        vendor: The vendor.
        name: The name by which the vendor was found, such as `jax_cpu`.
        since: A time before the process imported its first module of this project, as `time.time` returns it.
    """
    folder = program_folder()
    if folder is not None and name in known_vendors():
        vendor.store_programs(folder / name, since)
