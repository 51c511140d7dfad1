"""The device runtime: what a vendor implements besides operators, as C++ functions of namespace `dipu::devapis`.

Names, parameters and values of enumerations are facts of the public interface of the PyTorch extension DIPU. What
the functions mean in detail is not public. This project decides it, and each decision follows the words
"Project-defined:". The rules follow CUDA, the platform that PyTorch was written for. A vendor's own types are
`deviceStream_t` and `deviceEvent_t`, which are pointers or other handles of at most eight bytes.

Rules that hold for all functions, all of them project-defined:

- **Current device.** Each thread has a current device, which is 0 in a new thread. New streams, events and device
  memory belong to the current device of the calling thread. Work on a stream runs on the stream's device.
- **Streams.** The work of a stream runs in the order of the calls. The work of different streams has no order, except
  by events. The NULL stream is the default stream of the current device. It is a stream like any other.
- **Host memory.** An asynchronous copy of pinned memory may read or write that memory until the stream has reached the
  copy. With pageable memory, the call returns only after it has read the source or written the target.
- **Errors.** A function that returns no status throws an exception derived from `std::exception`, whose text names the
  reason. A call that throws has changed nothing, and later calls work.
- **Undefined.** Output pointers must not be NULL. A destroyed stream or event must not be used. The source and target
  of a copy must not overlap.
"""

from __future__ import annotations

from diopi_proto.device_runtime.devices import DEVICE_FUNCTIONS, PROFILER_FUNCTIONS
from diopi_proto.device_runtime.memory import MEMORY_FUNCTIONS
from diopi_proto.device_runtime.streams import STREAM_FUNCTIONS
from diopi_proto.device_runtime.types import ENUMS, STRUCTS

__all__ = ["ENUMS", "FUNCTIONS", "PROFILER_FUNCTIONS", "RUNTIME_FUNCTIONS", "STRUCTS"]

RUNTIME_FUNCTIONS = (*DEVICE_FUNCTIONS, *STREAM_FUNCTIONS, *MEMORY_FUNCTIONS)
"""The prototypes of the 38 functions of the device runtime."""

FUNCTIONS = (*RUNTIME_FUNCTIONS, *PROFILER_FUNCTIONS)
"""All prototypes: those of the device runtime and the two of the profiler, in the order of the C table."""
