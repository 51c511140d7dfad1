"""The collectives: what a vendor implements for several processes, as C++ functions of namespace `dipu::devapis`.

Names, parameters and values are facts of the public interface of the PyTorch extension DIPU. What the functions mean in
detail is not public. This project decides it, and each decision follows the words "Project-defined:". The rules
follow NCCL, the library that PyTorch uses on GPUs. A vendor's own types are `diclComm_t` and `commUniqueId`.
`diclComm_t` is a pointer or another handle of at most eight bytes. `commUniqueId` is a structure of
`DICL_UNIQUE_ID_BYTES_SIZE` bytes that can be copied as bytes.

Rules that hold for all functions, all of them project-defined:

- **Ranks.** A communicator connects ranks that are numbered from 0, usually one per process. All ranks call the same
  collectives in the same order, with equal counts, element types, operations and roots.
- **Order.** Each call enqueues work on a stream of the communicator's device. The work of a communicator is done in the
  order of the calls of this rank, even if the work is on several streams. Different communicators do not wait for each
  other.
- **Buffers.** Buffers are device memory of the communicator's device, aligned to the element type. A count may be 0;
  then buffers may be NULL, and the ranks still take part. Buffers do not overlap, except in the calls in place that a
  function allows. The elements of `send` stay the same unless the call is in place.
- **Element types.** Elements of all types that the header lists in at::ScalarType can be moved. Byte, Char, Int, Long,
  Half, BFloat16, Float and Double can be combined. A vendor may reject the other types in calls that combine.
- **Operations.** SUM, PRODUCT, MIN and MAX are required for all types that can be combined, and AVG for the
  floating-point types. AVG is the sum divided by the number of ranks. Sums and products of integers wrap around. A
  vendor may reject BAND, BOR, BXOR and PREMUL_SUM. For Booleans, SUM and MAX are "or", PRODUCT and MIN are "and".
- **Rounding.** Floating-point elements may be combined in any order, with partial results in the element type or in a
  wider one. Infinities and NaN spread as in IEEE 754, except that MIN and MAX of NaN and a number may be either.
- **Errors.** A call that fails returns DICL_ERR_UNDEF or throws an exception derived from `std::exception`. If work
  fails after the call, the communicator fails: diclGetCommAsyncError reports it, and later calls on the communicator
  are errors. Work that needs a rank fails if the rank has ended, makes another call (another function, count, element
  type, operation or root), or does not make progress within the time limit. Then the stream continues, the contents of
  the receive buffer are undefined, and other communicators still work.
- **Time limit.** The environment variable `DICL_TIMEOUT` is the time limit in seconds, a decimal number. The process
  reads it when it creates an id or a communicator. It is 600 by default.
"""

from __future__ import annotations

from diopi_proto.collectives.communicators import COMMUNICATOR_FUNCTIONS
from diopi_proto.collectives.exchanges import EXCHANGE_FUNCTIONS
from diopi_proto.collectives.types import ELEMENT_TYPES, OPERATIONS, REQUIRED_OPERATIONS, RESULTS, ElementType

__all__ = ["ELEMENT_TYPES", "FUNCTIONS", "OPERATIONS", "REQUIRED_OPERATIONS", "RESULTS", "ElementType"]

FUNCTIONS = (*COMMUNICATOR_FUNCTIONS, *EXCHANGE_FUNCTIONS)
"""The prototypes of the 14 collectives, in the order of the C table."""
