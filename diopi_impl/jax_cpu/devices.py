"""The vendors `jax:PLATFORM`, by the name of the platform."""

from __future__ import annotations

import jax
from jax.extend.backend import backends

from diopi_impl.errors import VendorNotFoundError
from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.device_vendor import JaxVendor
from diopi_impl.jax_cpu.placement import first_line


def find_jax_vendor(platform_and_number: str) -> JaxVendor:
    """Return the vendor `jax:PLATFORM`, or `jax_cpu` for JAX's first CPU device.

    Args:
        platform_and_number: a platform as JAX names it, such as `cuda`. The number of a device may follow, such as
            `cuda:1`; without a number it is the first device.

    Returns:
        The vendor.

    Raises:
        VendorNotFoundError: if JAX has no such device; the message lists the devices that it has.
    """
    name = f"jax:{platform_and_number}"
    platform, _, number = platform_and_number.partition(":")
    if number and not number.isdecimal():
        raise VendorNotFoundError(f"vendor {name}: {number!r} is not the number of a device. {_describe_devices()}")
    try:
        devices = jax.devices(platform)
    except RuntimeError as error:
        reason = first_line(error).removesuffix(".")
        raise VendorNotFoundError(
            f"vendor {name}: JAX {jax.__version__} has no platform {platform!r} here: {reason}. {_describe_devices()}"
        ) from error
    if int(number or 0) >= len(devices):
        raise VendorNotFoundError(
            f"vendor {name}: the platform {platform!r} has {len(devices)} devices here. {_describe_devices()}"
        )
    device = devices[int(number or 0)]
    return vendor if device == jax.devices("cpu")[0] else vendor.on_device(name, device)


def _describe_devices() -> str:
    """Return a sentence that lists the devices on which JAX can compute."""
    names = [
        f"jax:{platform}:{number}"
        for platform, backend in backends().items()
        for number in range(backend.local_device_count())
    ]
    return f"The devices are {', '.join(names)}."
