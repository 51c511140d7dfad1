"""A vendor with device memory that the host can't address, simulated by an offset on the addresses of host memory.

Tests name it as `remote:vendor` to run the suite with copies to and from a device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from host_runtime import HostRuntime
from numpy.typing import NDArray

from diopi_impl import Vendor
from lib_rt import RuntimeFunctions

_host = HostRuntime()
_OFFSET = 2**60
"""Device addresses exceed those of the memory behind them by this number; no process has memory at such addresses."""


def _malloc(nbytes: int) -> int:
    """Allocate memory and return an address that the host can't use."""
    return _host.malloc(nbytes) + _OFFSET


def _free(address: int) -> None:
    """Free memory at an address that `_malloc` returned."""
    _host.free(address - _OFFSET)


def _h2d(stream: int, destination: int, source: int, nbytes: int) -> None:
    """Copy from the host to the device."""
    _host.copy(stream, destination - _OFFSET, source, nbytes)


def _d2h(stream: int, destination: int, source: int, nbytes: int) -> None:
    """Copy from the device to the host."""
    _host.copy(stream, destination, source - _OFFSET, nbytes)


vendor = Vendor(
    "remote",
    "1",
    RuntimeFunctions(
        stream_create=_host.stream_create,
        stream_destroy=_host.stream_destroy,
        stream_sync=_host.stream_sync,
        malloc=_malloc,
        free=_free,
        h2d=_h2d,
        d2h=_d2h,
    ),
)


@vendor.implements("diopiNeg")
def neg(input: NDArray[Any]) -> NDArray[Any]:
    """Return −input."""
    return -input


@vendor.implements("diopiDynamicVoxelizeMmcv")
def dynamic_voxelize(
    coors: NDArray[Any], points: NDArray[Any], voxel_size: NDArray[Any], coors_range: NDArray[Any], NDim: int
) -> NDArray[Any]:
    """Return coordinates as if no point were outside of the range, which is a defect."""
    cells = np.floor((points[:, :3] - coors_range[:3]) / voxel_size)
    return cells[:, ::-1].astype(np.int32)
