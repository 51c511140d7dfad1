"""Collectives between processes: the backend `dicl` of `torch.distributed`.

If the library of the vendor's device runtime has collectives, the backend calls them for tensors on the device
(`vendor_collectives.py`). Otherwise it runs gloo on the device's memory.

Every collective calls an operator of the namespace `c10d`. The device registers one kernel for these operators: it
calls the same operator with tensors on the host, which share the device's memory if the host can address it. The
returned work is complete when the results are on the device.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any, final

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Store
from torch.utils._pytree import tree_leaves, tree_map_only

from diopi_torch.backend import backend
from diopi_torch.placement import run_on_device_of_tensors
from diopi_torch.settings import NAME
from diopi_torch.tensors import read_to_host
from diopi_torch.vendor_collectives import find_collectives, run_collective
from lib_rt.collectives_client import CollectivesClient

BACKEND = "dicl"
"""The name to pass to `torch.distributed.init_process_group`."""

KEY = "PrivateUse1"
"""PyTorch's dispatch key for kernels of the device."""

_INPUT_PARAMETERS = frozenset({"input", "input_tensor", "input_tensors", "inputs", "input_list"})
"""Names of arguments that a collective does not write; the schemas do not contain this information."""

_SENDS = frozenset({"send", "barrier"})
"""Operators that write none of their tensors."""

_POINT_TO_POINT = frozenset({"send", "recv_", "recv_any_source_"})
"""Operators that transfer tensors from one process to another, for which gloo supports all element types."""

_OF_ONE_TENSOR = frozenset({"_allgather_base_", "_reduce_scatter_base_"})
"""Operators of which one tensor consists of a part per process, such as the result of `all_gather_into_tensor`.

The parts may have any shape with the right number of elements.
"""

_NOT_IN_GLOO = frozenset({torch.int16, torch.uint16, torch.uint32, torch.uint64})
"""Element types for which gloo supports only transfers from one process to another."""


def install(library: torch.library.Library) -> None:
    """Register the backend and its kernels in a library of the namespace `c10d`."""
    dist.Backend.register_backend(BACKEND, _create_gloo_group, devices=[NAME, "cpu"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch says that kernels are replaced, which is what shall happen
        for name in torch._C._dispatch_get_all_op_names():
            if name.startswith("c10d::") and torch._C._dispatch_has_kernel_for_dispatch_key(name, KEY):
                operator = getattr(torch.ops.c10d, name.removeprefix("c10d::")).default
                kernel = run_on_device_of_tensors(partial(_run_collective, operator))
                library.impl(name, kernel, KEY, allow_override=True)


def _create_gloo_group(store: Store, rank: int, size: int, timeout: timedelta) -> Any:
    """Return a new gloo process group for the ranks of a `torch.distributed` group.

    Args:
        store: the store through which the ranks find each other.
        rank: the rank of this process.
        size: the number of ranks.
        timeout: the time limit of operations.
    """
    group = dist.ProcessGroupGloo(store, rank, size, timeout=timeout)
    group._set_sequence_number_for_group()
    return group


def _run_collective(operator: torch._ops.OpOverload, *args: Any) -> Any:
    """Call a collective with its tensors on the host.

    Args:
        operator: An operator of the namespace `c10d`.
        args: Its positional arguments, with tensors of the device. The first one contains the tensors that the operator
            returns beside its work, if it returns any.

    Returns:
        The results of the operator. Its work is replaced by a `_CollectiveWork`, unless it writes no tensors.

    Raises:
        RuntimeError: gloo or the vendor does not support the collective for this element type.
    """
    name = operator._schema.name.removeprefix("c10d::")
    arguments = {argument.name: value for argument, value in zip(operator._schema.arguments, args, strict=False)}
    client = find_collectives(backend().runtime)
    if client is not None:
        return _run_with_vendor(client, operator, name, arguments, args[0])
    _check_supported(name, arguments)
    exchange = _CollectiveTransfer(args[0])
    sent = [exchange.send_to_host(value, writes=key not in _INPUT_PARAMETERS) for key, value in arguments.items()]
    returned = operator(*(tree_map_only(torch.Tensor, _flatten, sent) if name in _OF_ONE_TENSOR else sent))
    if name in _SENDS:
        return returned
    work = dist.Work.unbox(returned[-1] if isinstance(returned, tuple) else returned)
    boxed = _CollectiveWork(work, exchange).boxed()
    return (args[0], boxed) if isinstance(returned, tuple) else boxed


def _run_with_vendor(
    client: CollectivesClient, operator: torch._ops.OpOverload, name: str, arguments: Mapping[str, Any], results: Any
) -> Any:
    """Call a collective of the vendor; return the results of the operator, with `results` beside its work."""
    group = dist.ProcessGroup.unbox(arguments["process_group"])
    tensors = [value for value in tree_leaves(list(arguments.values())) if isinstance(value, torch.Tensor)]
    work = run_collective(client, group, name, arguments, tensors, results).boxed()
    return (results, work) if len(operator._schema.returns) > 1 else work


def _flatten(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view with one axis if the tensor is contiguous; gloo divides the first axis among the processes."""
    return tensor.view(-1) if tensor.is_contiguous() else tensor


def _check_supported(name: str, arguments: Mapping[str, Any]) -> None:
    """Raise RuntimeError if gloo does not support the collective for the element type of one of its tensors."""
    called = name.rstrip("_")
    dtypes = {value.dtype for value in tree_leaves(list(arguments.values())) if isinstance(value, torch.Tensor)}
    lacking = [dtype for dtype in dtypes if dtype in _NOT_IN_GLOO or (called == "gather" and dtype.is_complex)]
    if lacking and name not in _POINT_TO_POINT:
        raise RuntimeError(f"{BACKEND}: gloo has no {called} of {lacking[0]}; convert it to another type first")


@final
class _CollectiveTransfer:
    """The tensors of one collective on the device and on the host.

    Args:
        results: the results of the operator besides the work, in their nested form.
    """

    def __init__(self, results: Any) -> None:
        self.results = results
        self._written: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._lock = threading.Lock()

    def send_to_host(self, value: Any, *, writes: bool) -> Any:
        """Return an argument with its tensors on the host, after waiting for the current stream.

        Args:
            value: The argument: a tensor, nested lists of tensors, or a value without tensors.
            writes: Whether the collective writes the tensors of this argument.
        """

        def moved(tensor: torch.Tensor) -> torch.Tensor:
            """Return a tensor on the host, and remember it if the collective writes it."""
            host = read_to_host(tensor) if tensor.device.type == NAME else tensor
            if writes and host.data_ptr() != tensor.data_ptr():
                self._written.append((tensor, host))
            return host

        return tree_map_only(torch.Tensor, moved, value)

    def finish(self) -> None:
        """Copy received data to the device unless host and device share the memory; later calls do nothing."""
        with self._lock, torch.no_grad():
            written, self._written = self._written, []
            for tensor, host in written:
                tensor.copy_(host)
            if written:
                backend().synchronize()


@final
class _CollectiveWork(dist.Work):
    """The work of a collective: waits for gloo and then copies the results to the device once.

    PyTorch's compiled code stores a reference to the work but not to its Python object, which must exist until the
    results are requested. Therefore `_pending_works` holds the object until the program waits for it or takes its
    future. Work that is created from a future would not report a failure when the program waits for it.
    """

    def __init__(self, work: Any, exchange: _CollectiveTransfer) -> None:
        super().__init__()
        self._work = work
        self._exchange = exchange
        _pending_works.add(self)

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Wait until the results are on the device, and return True; raise RuntimeError if the collective failed."""
        _pending_works.discard(self)
        self._work.wait(timeout)
        self._exchange.finish()
        return True

    def get_future(self) -> Any:
        """Return a future of the device's tensors."""
        _pending_works.discard(self)

        def results(future: Any) -> Any:
            """Copy received data to the device and return the results; raise the error of a failed collective."""
            future.value()  # raises the error if the collective failed
            self._exchange.finish()
            return self._exchange.results

        return self._work.get_future().then(results)

    def is_completed(self) -> bool:
        """Return whether the results are on the device."""
        is_done = bool(self._work.is_completed())
        if is_done:
            self._exchange.finish()
        return is_done

    def _source_rank(self) -> int:
        """Return the rank of the process that sent the data; PyTorch calls this method."""
        return int(self._work._source_rank())


_pending_works: set[_CollectiveWork] = set()
"""The works whose results the program has not requested; see `_CollectiveWork`."""
