"""A vendor's description of itself, and the check that its device works, before any case runs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from diopi_impl import IEEE, BaseVendor, Claim, Numerics, OperatorOverride, VendorError, Waiver
from diopi_impl.errors import describe_exception
from diopi_test.execution.case_taker import is_case_taker
from diopi_test.execution.verdict import OPTIONAL
from diopi_test.run.vendor_sources import SourceFiles
from lib_rt import Context, Device

PROBE_BYTES = 2**20
"""Bytes that the probe copies to the device and back."""


@dataclass(frozen=True, kw_only=True)
class Description:
    """A vendor's description of itself.

    Attributes:
        name, version, claims, waivers: what the vendor states.
        sources: the source files of the vendor's implementations.
        numerics: the arithmetic for which the vendor's results are evaluated.
        receives_cases: whether it is a test vendor that receives each case with the expected results.
        overrides: the operators of the vendor's framework that a library overrides.
    """

    name: str
    version: str
    claims: tuple[Claim, ...]
    waivers: tuple[Waiver, ...]
    sources: SourceFiles = field(default_factory=SourceFiles)
    numerics: Numerics = IEEE
    receives_cases: bool = field(default=False, metadata=OPTIONAL)
    overrides: tuple[OperatorOverride, ...] = field(default=(), metadata=OPTIONAL)

    @classmethod
    def from_vendor(cls, vendor: BaseVendor, numerics: Numerics | None = None) -> Description:
        """Return the description of a vendor.

        Args:
            vendor: The vendor.
            numerics: The arithmetic for which its results are evaluated; None for the arithmetic that it declares.
        """
        sources = SourceFiles.from_vendor(vendor)
        return cls(
            name=str(vendor.name),
            version=str(vendor.version),
            claims=vendor.claims,
            waivers=vendor.waivers,
            sources=sources,
            numerics=numerics or vendor.numerics,
            receives_cases=is_case_taker(vendor),
            overrides=tuple(vendor.overrides),
        )


def open_working_device(vendor: BaseVendor) -> Device:
    """Return a vendor's opened device after a test of it; raise VendorError with the reason if it fails."""
    step = "its device can't be opened"
    try:
        device = vendor.open_device()
        step = "its device can't copy 1 MiB there and back"
        _copy_there_and_back(device)
    except VendorError:
        raise
    except BaseException as error:  # a vendor may raise anything, and no user interrupts a worker
        raise VendorError(f"vendor {vendor.name}: {step}: {describe_exception(error)}") from error
    return device


def _copy_there_and_back(device: Device) -> None:
    """Copy random bytes to the device and back in a new stream; raise ValueError if different bytes come back."""
    sent = np.random.default_rng(0).integers(0, 256, PROBE_BYTES, np.uint8)
    received = np.zeros_like(sent)
    with Context(device) as context:
        block = device.malloc(PROBE_BYTES)
        try:
            context.stream.h2d(block, sent.ctypes.data, PROBE_BYTES)
            context.stream.d2h(received.ctypes.data, block, PROBE_BYTES)
            context.stream.synchronize()
        finally:
            device.free(block)
    if len(differing := np.flatnonzero(sent != received)):
        position = int(differing[0])
        raise ValueError(
            f"{len(differing)} bytes differ, first at {position}: sent {sent[position]}, received {received[position]}"
        )
