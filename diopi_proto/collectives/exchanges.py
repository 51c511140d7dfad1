"""The prototypes of the calls by which ranks exchange and combine elements."""

from __future__ import annotations

from diopi_proto.vendor_interface import VendorFunction, parse_parameters

_ORDER = "Ordered after earlier work on the stream. Does not wait for the device or for other ranks."
_REJECTED = (
    "The communicator has failed. The vendor does not implement the element type or the operation for it. The error is "
    "the same on all ranks, and nothing is enqueued."
)
_NO_ROOT = f"There is no rank `root`. {_REJECTED}"
_NO_PEER = f"There is no rank `peer`. {_REJECTED}"


def _exchange(
    name: str,
    parameters: str,
    doc: str,
    project_defined: str,
    *,
    errors: str = _REJECTED,
    is_optional: bool = False,
) -> VendorFunction:
    """Return the prototype of a call: its `parameters`, followed by a communicator and a stream."""
    return VendorFunction(
        name=name,
        returns="diclResult_t",
        parameters=parse_parameters(f"{parameters}, diclComm_t comm, deviceStream_t stream"),
        doc=doc,
        errors=errors,
        stream_order=_ORDER,
        project_defined=project_defined,
        is_optional=is_optional,
    )


_BUFFERS = "const void* send, void* receive"
_COMBINED = "size_t count, at::ScalarType type, const ReduceOp& operation"

EXCHANGE_FUNCTIONS = (
    _exchange(
        "diclAllReduce",
        f"{_BUFFERS}, {_COMBINED}",
        "Combine the elements of all ranks. Every rank receives the result.",
        "All ranks receive the same bits. In place: `receive` may be `send`.",
    ),
    _exchange(
        "diclReduce",
        f"{_BUFFERS}, {_COMBINED}, int root",
        "Combine the elements of all ranks. The root receives the result.",
        "The other ranks do not use `receive`, which may be NULL there. In place: `receive` may be `send`.",
        errors=_NO_ROOT,
    ),
    _exchange(
        "diclBroadcast",
        f"{_BUFFERS}, size_t count, at::ScalarType type, int root",
        "Send the elements of the root to all ranks.",
        "The root copies `send` to `receive`. The other ranks do not use `send`, which may be NULL there. In place: "
        "`receive` may be `send`.",
        errors=_NO_ROOT,
    ),
    _exchange(
        "diclAllGather",
        f"{_BUFFERS}, size_t send_count, at::ScalarType type",
        "Join the elements of all ranks in the order of the ranks. Every rank receives ranks * send_count elements.",
        "In place: `send` may be the rank's part of `receive`, which begins at element rank * send_count.",
    ),
    _exchange(
        "diclReduceScatter",
        "void* send, void* receive, size_t receive_count, at::ScalarType type, const ReduceOp& operation",
        "Combine ranks * receive_count elements of all ranks. Rank r receives part r, receive_count elements of the "
        "result.",
        "In place: `receive` may be the rank's part of `send`, which begins at element rank * receive_count. Then only "
        "this part of `send` changes.",
    ),
    _exchange(
        "diclAllToAllEqualSplit",
        f"{_BUFFERS}, size_t count, at::ScalarType type",
        "Send part p of `send`, of `count` elements, to rank p. The part from rank p becomes part p of `receive`.",
        "The rank's own part is copied. The call does not work in place.",
        is_optional=True,
    ),
    _exchange(
        "diclAllToAllUnequalSplit",
        "const void* send, const size_t* send_counts, const size_t* send_displacements, void* receive, "
        "const size_t* receive_counts, const size_t* receive_displacements, at::ScalarType type",
        "Act like diclAllToAllEqualSplit, with parts that differ in size. Part p has send_counts[p] elements and "
        "begins at element send_displacements[p].",
        "The number of elements from rank p, receive_counts[p], is the number that rank p sends to this rank. The "
        "program may change the four arrays after the call. Parts of `receive` do not overlap. Elements between the "
        "parts stay the same. The call does not work in place.",
        is_optional=True,
    ),
    _exchange(
        "diclSend",
        "const void* send, size_t count, at::ScalarType type, int peer",
        "Send elements to another rank, which calls diclRecv.",
        "Sends from a rank to another pair with receives in the order of the calls. Later work of the stream may wait "
        "until the other rank receives. If two ranks send to each other first, on one communicator, they may wait "
        "until the time limit: let one of them receive first. `peer` must be another rank.",
        errors=_NO_PEER,
    ),
    _exchange(
        "diclRecv",
        "void* receive, size_t count, at::ScalarType type, int peer",
        "Receive elements from another rank, which calls diclSend with the same number and type of elements.",
        "`peer` must be another rank.",
        errors=_NO_PEER,
    ),
)
"""The prototypes of the exchanges."""
