"""Find vendors by entry point, device of a framework, `module:attribute`, or path of a compiled library."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from diopi_impl.base import BaseVendor
from diopi_impl.errors import VendorError, VendorNotFoundError
from diopi_impl.importing import describe_import_failure, import_attribute
from diopi_impl.native import NativeVendor
from diopi_proto.messages import describe_unknown

ENTRY_POINT_GROUP = "diopi.vendors"
"""The group of entry points under which installed packages register vendors."""

FRAMEWORKS = {
    "jax": "diopi_impl.jax_cpu.devices:find_jax_vendor",
    "torch": "diopi_impl.torch_cpu.devices:find_torch_vendor",
}
"""The functions that return the vendor `FRAMEWORK:DEVICE`, by the package of the framework."""

RECORDED_RESULTS = "diopi_test.target.replay:open_results"
"""The function that returns a vendor which answers calls with the results of a target, from the path of their file."""

RESULTS_SUFFIX = ".diopi"
"""The suffix of files with the results of a target."""

REQUIREMENTS = {"jax": "jax", "torch": "'diopi[torch]'"}
"""What to install for each framework."""


def known_vendors() -> Mapping[str, EntryPoint]:
    """Return the vendors that installed packages register, by name."""
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def find_vendor(name: str) -> BaseVendor:
    """Return the vendor called `name`.

    Args:
        name: a registered name, `torch:DEVICE`, `jax:PLATFORM`, `module:attribute`, the path of a `.so`, or the path of
            a `.diopi` file with the results of a target. In `torch:DEVICE+MODULE:FUNCTION`, the function prepares the
            process (see `--torch-setup`).

    Returns:
        The vendor.

    Raises:
        VendorNotFoundError: if there is no such vendor; the message lists the known names.
        VendorError: if the vendor exists but can't be loaded.
    """
    if name.endswith(".so"):
        return NativeVendor(Path(name))
    if name.endswith(RESULTS_SUFFIX):
        open_results: Any = import_attribute(RECORDED_RESULTS, f"vendor {name}")
        return _require_vendor(name, open_results(Path(name)))
    framework, _, device = name.partition(":")
    if device and framework in FRAMEWORKS:
        return _find_on_device(framework, device)
    if ":" in name:
        return _require_vendor(name, import_attribute(name, f"vendor {name}"))
    known = known_vendors()
    if name not in known:
        unknown = describe_unknown(name, sorted(known), "registered vendors")
        raise VendorNotFoundError(
            f"vendor {unknown} Pass a registered name, torch:DEVICE, jax:PLATFORM, module:attribute, "
            "or the path of a .so."
        )
    return _require_vendor(name, _load(known[name]))


def importable_name(name: str) -> str:
    """Return the `module:attribute` of a registered name; return any other name unchanged."""
    known = known_vendors()
    return known[name].value if name in known else name


def _find_on_device(framework: str, device: str) -> BaseVendor:
    """Return the vendor of a framework on a device; raise VendorNotFoundError if the framework is not installed."""
    try:
        installed = importlib.util.find_spec(framework) is not None
    except ValueError:  # the module was created without a specification
        installed = True
    if not installed:
        raise VendorNotFoundError(
            f"vendor {framework}:{device} needs the package {framework}: pip install {REQUIREMENTS[framework]}"
        )
    find: Any = import_attribute(FRAMEWORKS[framework], f"vendor {framework}:{device}")
    return _require_vendor(f"{framework}:{device}", find(device))


def _load(point: EntryPoint) -> object:
    """Return the object of an entry point; raise VendorError if that fails."""
    try:
        return point.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise VendorError(
            f"vendor {point.name}: {point.value} can't be loaded: {describe_import_failure(error)}"
        ) from error


def _require_vendor(name: str, value: object) -> BaseVendor:
    """Return the object; raise VendorNotFoundError unless it is a vendor."""
    if not isinstance(value, BaseVendor):
        raise VendorNotFoundError(f"vendor {name} is a {type(value).__name__}, expected a diopi_impl.Vendor")
    return value
