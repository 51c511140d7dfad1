"""The vendors `torch:DEVICE`, by the name of the device."""

from __future__ import annotations

import importlib

import torch

from diopi_impl.errors import VendorError, VendorNotFoundError, describe_exception
from diopi_impl.torch_cpu import vendor
from diopi_impl.torch_cpu.device_vendor import TorchVendor
from diopi_impl.torch_cpu.overrides import set_up_library

EXTENSIONS = {
    "diopi": "diopi_torch",
    "hpu": "habana_frameworks.torch",
    "mlu": "torch_mlu",
    "musa": "torch_musa",
    "npu": "torch_npu",
}
"""The packages that add devices to PyTorch, by the type of the device. PyTorch itself imports most of them."""


def find_torch_vendor(device_and_setup: str) -> TorchVendor:
    """Return the vendor `torch:DEVICE`; for the CPU it is `torch_cpu`.

    Args:
        device_and_setup: a device as PyTorch names it, such as `cuda:0`. It may be followed by `+` and the path of a
            function that sets up a library of operators, such as `cuda:0+my_kernels:enable`.

    Returns:
        The vendor.

    Raises:
        VendorNotFoundError: if PyTorch has no such device, where the message lists the devices that it has, or if there
            is no such function.
        VendorError: if the package that adds the device to PyTorch can't be imported, or the function fails.
    """
    device_name, _, setup = device_and_setup.partition("+")
    name = f"torch:{device_name}"
    _import_extension(name, device_name.partition(":")[0])
    try:
        device = torch.device(device_name)
        torch.empty(1, device=device)
    except Exception as error:  # PyTorch raises RuntimeError, AssertionError or NotImplementedError
        reason = str(error).partition("\n")[0]
        raise VendorNotFoundError(
            f"vendor {name}: PyTorch {torch.__version__} has no device {device_name!r} here: {reason} "
            f"The devices are {', '.join(_available_devices())}."
        ) from error
    device_vendor = vendor if device.type == "cpu" else vendor.on_device(name, device)
    if not setup:
        return device_vendor
    name = f"{name}+{setup}"
    return device_vendor.with_library(name, set_up_library(setup, device, name))


def _import_extension(name: str, device_type: str) -> None:
    """Import the package that adds a type of device to PyTorch, if it is known and installed.

    Raises:
        VendorError: The import of the installed package fails.
    """
    module = EXTENSIONS.get(device_type)
    try:
        if module is not None:
            importlib.import_module(module)
    except ModuleNotFoundError:
        return  # the error about the missing device follows
    except Exception as error:
        raise VendorError(f"vendor {name}: {module} can't be imported: {describe_exception(error)}") from error


def _available_devices() -> list[str]:
    """Return the names of the devices on which PyTorch can compute."""
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    count = 0 if accelerator is None else torch.accelerator.device_count()
    return ["torch:cpu", *(f"torch:{accelerator}:{number}" for number in range(count))]
