"""The registered runtime: devices, streams, contexts, tensors and generators built on a vendor's functions."""

from diopi_proto.registration import RuntimeFunctions
from lib_rt.context import Context
from lib_rt.device import Device
from lib_rt.dtypes import is_poison, poison_of
from lib_rt.errors import CallError, ForeignObjectError, GuardError, LibraryNotFoundError, ReleasedError
from lib_rt.generator import Generator
from lib_rt.records import Record, recording
from lib_rt.stream import Stream
from lib_rt.tensor import Tensor

__all__ = [
    "CallError",
    "Context",
    "Device",
    "ForeignObjectError",
    "Generator",
    "GuardError",
    "LibraryNotFoundError",
    "Record",
    "ReleasedError",
    "RuntimeFunctions",
    "Stream",
    "Tensor",
    "is_poison",
    "poison_of",
    "recording",
]
