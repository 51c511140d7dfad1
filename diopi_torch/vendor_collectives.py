"""Collectives over the vendor's library, for tensors on the device: the second implementation of the backend `dicl`.

A process group gets one communicator, and two more for each pair of ranks that send to each other: the interface does
the work of a communicator in order, so two ranks that both receive first would wait for each other. The work of each
communicator runs on a stream of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, final

import torch
import torch.distributed as dist

from diopi_proto.collectives import ELEMENT_TYPES, OPERATIONS
from diopi_torch import device as devices
from diopi_torch.backend import Backend, backend
from diopi_torch.layout import TORCH_DTYPES
from diopi_torch.settings import BLOCKING_WAIT, is_switched_on
from diopi_torch.streams import DeviceEvent
from lib_rt.collectives_client import CollectivesClient
from lib_rt.device_runtime_client import MissingFunctionError, NoDeviceRuntimeError, RuntimeCallError

TYPE_VALUES = {TORCH_DTYPES[element.dtype]: element.value for element in ELEMENT_TYPES if element.dtype in TORCH_DTYPES}
"""The value that the vendor receives for each element type."""

Tensors = Sequence[torch.Tensor]
"""The tensors of one collective."""


@cache
def find_collectives(runtime: Any) -> CollectivesClient | None:
    """Return the collectives in the library of a device runtime; None without a runtime, or if it has none."""
    if runtime.library is None:
        return None
    try:
        return CollectivesClient(runtime.library)
    except NoDeviceRuntimeError:
        return None


@final
class Communicator:
    """A communicator of the vendor, with the stream on which its work runs.

    Args:
        client: calls the vendor's functions.
        owner: the device of this rank.
        store: the store of the process group, through which the ranks agree on an ID.
        key: the name of the communicator in the store, the same on all ranks.
        rank: the rank of this process in the communicator.
        size: the number of ranks.
    """

    def __init__(
        self, client: CollectivesClient, owner: Backend, store: Any, key: str, *, rank: int, size: int
    ) -> None:
        if rank == 0:
            store.set(key, client.create_unique_id())
        unique_id = bytes(store.get(key))
        self._client = client
        self.rank, self.size = rank, size
        self.stream = devices.Stream(owner.index)
        with owner.runtime.on_device(owner.index):
            self._handle = client.create_communicator(size, unique_id, rank, owner.index)
        owner.before_close.append(self._destroy)

    def call(self, function: str, *inputs: Any) -> None:
        """Call a function of the vendor on the stream.

        Args:
            function: the name of the function in the table.
            inputs: its arguments before the communicator and the stream.

        Raises:
            RuntimeError: the vendor lacks the function, or the function fails.
        """
        try:
            self._client.call(function, *inputs, self._handle, self.stream.handle)
        except MissingFunctionError:
            raise RuntimeError(f"dicl: the vendor has no {function}") from None
        except RuntimeCallError as error:
            raise RuntimeError(f"dicl: {error}") from None

    def check(self) -> None:
        """Raise RuntimeError if work of the communicator has failed."""
        try:
            self._client.call("diclGetCommAsyncError", self._handle)
        except RuntimeCallError as error:
            raise RuntimeError(f"dicl: a collective failed: {error}") from None

    def all_reduce(self, tensor: torch.Tensor, operation: int) -> None:
        """Combine a tensor of all ranks in place."""
        with _contiguous(tensor) as dense:
            address, kind = dense.data_ptr(), _type_value(dense)
            self.call("diclAllReduce", address, address, dense.numel(), kind, operation)

    def reduce(self, tensor: torch.Tensor, operation: int, root: int) -> None:
        """Combine a tensor of all ranks; only the tensor of the root changes."""
        with _contiguous(tensor) as dense:
            address, kind = dense.data_ptr(), _type_value(dense)
            self.call("diclReduce", address, address, dense.numel(), kind, operation, root)

    def broadcast(self, tensor: torch.Tensor, root: int) -> None:
        """Copy the tensor of the root to the tensors of all ranks."""
        with _contiguous(tensor) as dense:
            address = dense.data_ptr()
            self.call("diclBroadcast", address, address, dense.numel(), _type_value(dense), root)

    def all_gather(self, joined: torch.Tensor, part: torch.Tensor) -> None:
        """Write the parts of all ranks to `joined` in the order of the ranks."""
        _check_size(joined, self.size * part.numel())
        sent = part.contiguous()
        with _contiguous(joined) as dense:
            self.call("diclAllGather", sent.data_ptr(), dense.data_ptr(), sent.numel(), _type_value(sent))

    def reduce_scatter(self, part: torch.Tensor, joined: torch.Tensor, operation: int) -> None:
        """Combine the tensors `joined` of all ranks, and write the part of this rank to `part`."""
        _check_size(joined, self.size * part.numel())
        sent = joined.contiguous()
        with _contiguous(part) as dense:
            self.call(
                "diclReduceScatter", sent.data_ptr(), dense.data_ptr(), dense.numel(), _type_value(sent), operation
            )

    def all_to_all(
        self, received: torch.Tensor, sent: torch.Tensor, receive_counts: list[int], send_counts: list[int]
    ) -> None:
        """Send a part of `sent` to each rank, and write the parts from all ranks to `received`; counts in elements."""
        source = sent.contiguous()
        with _contiguous(received) as dense:
            self.call(
                "diclAllToAllUnequalSplit",
                *(source.data_ptr(), send_counts, _offsets(send_counts)),
                *(dense.data_ptr(), receive_counts, _offsets(receive_counts)),
                _type_value(source),
            )

    def send(self, tensor: torch.Tensor, peer: int) -> None:
        """Send a tensor to another rank."""
        sent = tensor.contiguous()
        self.call("diclSend", sent.data_ptr(), sent.numel(), _type_value(sent), peer)

    def receive(self, tensor: torch.Tensor, peer: int) -> None:
        """Receive a tensor from another rank."""
        with _contiguous(tensor) as dense:
            self.call("diclRecv", dense.data_ptr(), dense.numel(), _type_value(dense), peer)

    def _destroy(self) -> None:
        """Wait for the stream and destroy the communicator."""
        self.stream.synchronize()
        self._client.call("diclCommDestroy", self._handle)


@contextmanager
def _contiguous(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield a tensor with contiguous elements, and copy them back to `tensor` afterwards if it is another one."""
    dense = tensor.contiguous()
    yield dense
    if dense is not tensor and dense.data_ptr() != tensor.data_ptr():
        tensor.copy_(dense)


def _type_value(tensor: torch.Tensor) -> int:
    """Return the value of a tensor's element type; raise RuntimeError if the interface does not have it."""
    if tensor.dtype not in TYPE_VALUES:
        raise RuntimeError(f"dicl: the collectives have no element type {tensor.dtype}")
    return TYPE_VALUES[tensor.dtype]


def _check_size(tensor: torch.Tensor, expected: int) -> None:
    """Raise RuntimeError unless a tensor, which has a part per rank, has this number of elements."""
    if tensor.numel() != expected:
        raise RuntimeError(f"dicl: expected a tensor of {expected} elements, one part per rank, found {tensor.numel()}")


def _offsets(counts: Sequence[int]) -> list[int]:
    """Return where each part begins if parts of these sizes follow each other."""
    return [sum(counts[:place]) for place in range(len(counts))]


@final
class GroupCommunicators:
    """The communicators of a process group on one device, created when they are first needed.

    Args:
        client: calls the vendor's functions.
        owner: the device of this rank.
        group: the process group.
    """

    def __init__(self, client: CollectivesClient, owner: Backend, group: Any) -> None:
        self._client, self._owner = client, owner
        self._store, self.rank, self.size = group.get_group_store(), group.rank(), group.size()
        self._between: dict[tuple[int, int], Communicator] = {}
        self.all_ranks = self._create("all", self.rank, self.size)

    def between(self, source: int, target: int) -> Communicator:
        """Return the communicator for transfers from one rank to another one; rank 0 in it is the source."""
        if (source, target) not in self._between:
            low, high = sorted((source, target))
            for pair in ((low, high), (high, low)):  # both ranks create them in this order
                self._between[pair] = self._create(f"{pair[0]}-{pair[1]}", pair.index(self.rank), 2)
        return self._between[source, target]

    def transfer(self, tensor: torch.Tensor, source: int, target: int) -> Communicator:
        """Send a tensor from rank `source` to rank `target`, of which this rank is one; return the communicator."""
        communicator = self.between(source, target)
        with _on_stream_of(communicator, [tensor]):
            if self.rank == source:
                communicator.send(tensor, 1)
            else:
                communicator.receive(tensor, 0)
        return communicator

    def _create(self, name: str, rank: int, size: int) -> Communicator:
        """Return a new communicator; the name distinguishes those of a group.

        Args:
            name: the name.
            rank: the rank of this process in the communicator.
            size: the number of ranks.
        """
        return Communicator(self._client, self._owner, self._store, f"dicl/{name}", rank=rank, size=size)


@contextmanager
def _on_stream_of(communicator: Communicator, tensors: Tensors) -> Iterator[None]:
    """Return a context manager that uses the communicator's stream, after the current work of this thread.

    The stream keeps the tensors until its work is complete.
    """
    communicator.stream.wait_stream(backend().stream)
    for tensor in tensors:
        communicator.stream.retain(tensor)
    with devices.stream(communicator.stream):
        yield


Exchange = Callable[[GroupCommunicators, Mapping[str, Any]], None]
"""Enqueues a collective between all ranks; the mapping has the operator's arguments by name."""


def _operation(arguments: Mapping[str, Any]) -> int:
    """Return the value of the operation that combines elements; raise RuntimeError for PREMUL_SUM."""
    value = int(arguments["reduce_op"].op())
    if OPERATIONS[value] == "PREMUL_SUM":
        raise RuntimeError("dicl: PREMUL_SUM is not supported, because PyTorch hides its factor; scale before SUM")
    return value


def _all_reduce(group: GroupCommunicators, arguments: Mapping[str, Any]) -> None:
    """Combine each tensor of all ranks."""
    for tensor in arguments["tensors"]:
        group.all_ranks.all_reduce(tensor, _operation(arguments))


def _reduce(group: GroupCommunicators, arguments: Mapping[str, Any]) -> None:
    """Combine the tensor of all ranks at the root."""
    for tensor in arguments["tensors"]:
        group.all_ranks.reduce(tensor, _operation(arguments), arguments["root_rank"])


def _broadcast(group: GroupCommunicators, arguments: Mapping[str, Any]) -> None:
    """Copy the tensor of the root to all ranks."""
    for tensor in arguments["tensors"]:
        group.all_ranks.broadcast(tensor, arguments["root_rank"])


def _gather_lists(group: GroupCommunicators, lists: Sequence[Tensors], parts: Tensors) -> None:
    """Gather each part; `lists` has for each part the tensors that receive it, one per rank."""
    for outputs, part in zip(lists, parts, strict=True):
        joined = torch.empty(group.size, part.numel(), dtype=part.dtype, device=part.device)
        group.all_ranks.all_gather(joined, part)
        for output, row in zip(outputs, joined, strict=True):
            output.copy_(row.view(output.shape))


def _all_gather(group: GroupCommunicators, arguments: Mapping[str, Any]) -> None:
    """Gather tensors to a list of tensors."""
    _gather_lists(group, arguments["output_tensors"], arguments["input_tensors"])


def _all_gather_coalesced(group: GroupCommunicators, arguments: Mapping[str, Any]) -> None:
    """Gather several tensors; the output has a list per rank."""
    _gather_lists(group, list(zip(*arguments["output_lists"], strict=True)), arguments["input_list"])


def _all_gather_joined(group: GroupCommunicators, arguments: Mapping[str, Any]) -> None:
    """Gather a tensor to one tensor."""
    group.all_ranks.all_gather(arguments["output_tensor"], arguments["input_tensor"])


def _all_gather_joined_coalesced(group: GroupCommunicators, arguments: Mapping[str, Any]) -> None:
    """Gather several tensors, each to one tensor."""
    for joined, part in zip(arguments["outputs"], arguments["inputs"], strict=True):
        group.all_ranks.all_gather(joined, part)


def _reduce_scatter(group: GroupCommunicators, arguments: Mapping[str, Any]) -> None:
    """Combine lists of tensors; each rank receives its entry."""
    for part, entries in zip(arguments["output_tensors"], arguments["input_tensors"], strict=True):
        joined = torch.cat([entry.reshape(-1) for entry in entries])
        group.all_ranks.reduce_scatter(part, joined, _operation(arguments))


def _reduce_scatter_joined(group: GroupCommunicators, arguments: Mapping[str, Any]) -> None:
    """Combine a tensor; each rank receives its part."""
    group.all_ranks.reduce_scatter(arguments["output_tensor"], arguments["input_tensor"], _operation(arguments))


def _reduce_scatter_joined_coalesced(group: GroupCommunicators, arguments: Mapping[str, Any]) -> None:
    """Combine several tensors; each rank receives its part of each."""
    for part, joined in zip(arguments["outputs"], arguments["inputs"], strict=True):
        group.all_ranks.reduce_scatter(part, joined, _operation(arguments))


def _all_to_all(group: GroupCommunicators, arguments: Mapping[str, Any]) -> None:
    """Send an entry of a list to each rank, and receive a list."""
    outputs, inputs = arguments["output_tensors"], arguments["input_tensors"]
    receive_counts, send_counts = ([tensor.numel() for tensor in tensors] for tensors in (outputs, inputs))
    sent = torch.cat([tensor.reshape(-1) for tensor in inputs])
    received = torch.empty(sum(receive_counts), dtype=sent.dtype, device=sent.device)
    group.all_ranks.all_to_all(received, sent, receive_counts, send_counts)
    for output, row in zip(outputs, received.split(receive_counts), strict=True):
        output.copy_(row.view(output.shape))


def _all_to_all_joined(group: GroupCommunicators, arguments: Mapping[str, Any]) -> None:
    """Send a part of the first axis of a tensor to each rank; without sizes, the parts are equal."""
    output, source = arguments["output"], arguments["input"]
    counts = [
        [rows * (tensor.numel() // max(len(tensor), 1)) for rows in sizes]
        if sizes
        else [tensor.numel() // group.size] * group.size
        for tensor, sizes in ((output, arguments["output_split_sizes"]), (source, arguments["input_split_sizes"]))
    ]
    group.all_ranks.all_to_all(output, source, *counts)


def _barrier(group: GroupCommunicators, arguments: Mapping[str, Any]) -> None:
    """Wait on the host until all ranks have come to this point."""
    group.all_ranks.all_reduce(torch.zeros(1, device=arguments["tensor"].device), OPERATIONS.index("SUM"))
    group.all_ranks.stream.synchronize()
    group.all_ranks.check()


EXCHANGES: Mapping[str, Exchange] = {
    "allreduce_": _all_reduce,
    "allreduce_coalesced_": _all_reduce,
    "reduce_": _reduce,
    "broadcast_": _broadcast,
    "allgather_": _all_gather,
    "allgather_coalesced_": _all_gather_coalesced,
    "_allgather_base_": _all_gather_joined,
    "allgather_into_tensor_coalesced_": _all_gather_joined_coalesced,
    "reduce_scatter_": _reduce_scatter,
    "_reduce_scatter_base_": _reduce_scatter_joined,
    "reduce_scatter_tensor_coalesced_": _reduce_scatter_joined_coalesced,
    "alltoall_": _all_to_all,
    "alltoall_base_": _all_to_all_joined,
    "barrier": _barrier,
}
"""The collectives between all ranks, by operator of the namespace `c10d`."""


def _run_transfers(group: GroupCommunicators, name: str, arguments: Mapping[str, Any]) -> Sequence[Communicator]:
    """Enqueue an operator that consists of transfers between two ranks; return the communicators that it uses."""
    rank, transfers = group.rank, list[tuple[torch.Tensor, int, int]]()
    if name == "send":
        transfers = [(tensor, rank, arguments["dst"]) for tensor in arguments["tensors"]]
    elif name == "recv_":
        transfers = [(tensor, arguments["src"], rank) for tensor in arguments["tensors"]]
    elif name == "gather_":
        root, (part,) = arguments["root_rank"], arguments["input_tensors"]
        outputs = arguments["output_tensors"][0] if rank == root else []
        transfers = [(output, source, root) for source, output in enumerate(outputs)] or [(part, rank, root)]
        if rank == root:
            outputs[root].copy_(part)
    elif name == "scatter_":
        root, (part,) = arguments["root_rank"], arguments["output_tensors"]
        inputs = arguments["input_tensors"][0] if rank == root else []
        transfers = [(source, root, target) for target, source in enumerate(inputs)] or [(part, root, rank)]
        if rank == root:
            part.copy_(inputs[root])
    else:
        raise RuntimeError(f"dicl: the vendor's collectives have no {name.rstrip('_')}")
    return [group.transfer(tensor, source, target) for tensor, source, target in transfers if source != target]


def run_collective(
    client: CollectivesClient, group: Any, name: str, arguments: Mapping[str, Any], tensors: Tensors, results: Any
) -> VendorWork:
    """Enqueue a collective and return its work.

    Args:
        client: calls the vendor's functions.
        group: the process group.
        name: the name of the operator in the namespace `c10d`.
        arguments: the arguments of the operator by name.
        tensors: all tensors among the arguments.
        results: the results of the work's future.

    Returns:
        The work.
    """
    communicators = _communicators(client, group, backend())
    exchange = EXCHANGES.get(name)
    if exchange is None:
        used_communicators = _run_transfers(communicators, name, arguments)
    else:
        with _on_stream_of(communicators.all_ranks, tensors):
            exchange(communicators, arguments)
        used_communicators = [communicators.all_ranks]
    return VendorWork(used_communicators, results, int(arguments.get("src", -1)))


_groups: dict[tuple[Any, Backend], GroupCommunicators] = {}
"""The communicators by process group and device."""


def _communicators(client: CollectivesClient, group: Any, owner: Backend) -> GroupCommunicators:
    """Return the communicators of a process group on a device; all ranks must call this function for the first time."""
    key = group, owner
    if key not in _groups:
        _groups[key] = GroupCommunicators(client, owner, group)
    return _groups[key]


@cache
def _waiters() -> ThreadPoolExecutor:
    """Return the threads that complete futures when the device has finished their work."""
    return ThreadPoolExecutor(thread_name_prefix="dicl")


@final
class VendorWork(dist.Work):
    """The work of a collective of the vendor: streams of the communicators, up to their current work.

    PyTorch's compiled code stores a reference to the work but not to its Python object, which must exist until the
    program waits for the work or takes its future. Therefore `pending_vendor_works` holds the object until then.

    Args:
        communicators: the communicators that do the work.
        results: the results of the future.
        source: the rank that sends, for a work that receives; otherwise -1.
    """

    def __init__(self, communicators: Sequence[Communicator], results: Any, source: int) -> None:
        super().__init__()
        self._communicators = communicators
        self._events: list[DeviceEvent] = [communicator.stream.record_event() for communicator in communicators]
        self._results = results
        self._source = source
        pending_vendor_works.add(self)

    def wait(self, timeout: Any = None) -> bool:
        """Let later work on the current stream start after the collective.

        With the switch `BLOCKING_WAIT`, also wait on the host. If a communicator has failed, raise RuntimeError.

        Args:
            timeout: is ignored; the vendor's time limit applies.

        Returns:
            True.
        """
        pending_vendor_works.discard(self)
        for event in self._events:
            backend().stream.wait_event(event)
        if is_switched_on(BLOCKING_WAIT):
            self._wait_on_host()
        self._check()
        return True

    def get_future(self) -> Any:
        """Return a future of the results; it is complete when the device has finished the work."""
        pending_vendor_works.discard(self)
        future: torch.futures.Future[Any] = torch.futures.Future()
        _waiters().submit(self._complete, future)
        return future

    def is_completed(self) -> bool:
        """Return whether the device has finished the work; raise RuntimeError if it failed."""
        is_done = all(event.query() for event in self._events)
        if is_done:
            self._check()
        return is_done

    def _source_rank(self) -> int:
        """Return the rank of the process that sent the data; PyTorch calls this method."""
        return self._source

    def _complete(self, future: torch.futures.Future[Any]) -> None:
        """Wait for the work and complete its future, with an error if the work failed."""
        try:
            self._wait_on_host()
            self._check()
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(self._results)

    def _wait_on_host(self) -> None:
        """Wait until the device has finished the work."""
        for event in self._events:
            event.synchronize()

    def _check(self) -> None:
        """Raise RuntimeError if a communicator has failed."""
        for communicator in self._communicators:
            communicator.check()


pending_vendor_works: set[VendorWork] = set()
"""The works that the program has not waited for; see `VendorWork`."""
