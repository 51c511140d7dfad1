"""Collectives between processes: the backend `dicl` of `torch.distributed`, which is gloo on the device's memory.

Every collective goes through an operator of the namespace `c10d`. For the device these get one kernel: it calls the
same operator with the tensors on the host, which are the device's memory itself where the host can address that. The
work that it returns is done when the results are on the device.
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
from diopi_torch.settings import NAME
from diopi_torch.tensors import on_host

BACKEND = "dicl"
"""What `torch.distributed.init_process_group` is given."""

KEY = "PrivateUse1"

_READ = frozenset({"input", "input_tensor", "input_tensors", "inputs", "input_list"})
"""Names of arguments that a collective does not write: the schemas don't say which those are."""

_SENDS = frozenset({"send", "barrier"})
"""Operators that write none of their tensors."""

_POINT_TO_POINT = frozenset({"send", "recv_", "recv_any_source_"})

_NOT_IN_GLOO = frozenset({torch.int16, torch.uint16, torch.uint32, torch.uint64})
"""Element types that gloo sends from one process to another, and nothing else."""


def install(library: torch.library.Library) -> None:
    """Register the backend, and its kernels in a library of the namespace `c10d`."""
    dist.Backend.register_backend(BACKEND, _gloo, devices=[NAME, "cpu"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch says that kernels are replaced, which is what shall happen
        for name in torch._C._dispatch_get_all_op_names():
            if name.startswith("c10d::") and torch._C._dispatch_has_kernel_for_dispatch_key(name, KEY):
                operator = getattr(torch.ops.c10d, name.removeprefix("c10d::")).default
                library.impl(name, partial(_collective, operator), KEY, allow_override=True)


def _gloo(store: Store, rank: int, size: int, timeout: timedelta) -> Any:
    """What does the collectives of one group."""
    group = dist.ProcessGroupGloo(store, rank, size, timeout=timeout)
    group._set_sequence_number_for_group()
    return group


def _collective(operator: torch._ops.OpOverload, *args: Any) -> Any:
    """Call a collective with the tensors on the host. RuntimeError if gloo does not have it."""
    name = operator._schema.name.removeprefix("c10d::")
    arguments = {argument.name: value for argument, value in zip(operator._schema.arguments, args, strict=False)}
    _check(name, arguments)
    exchange = _Exchange(args[0])
    returned = operator(*(exchange.sent(value, writes=key not in _READ) for key, value in arguments.items()))
    if name in _SENDS:
        return returned
    work = dist.Work.unbox(returned[-1] if isinstance(returned, tuple) else returned)
    boxed = _Work(work, exchange).boxed()
    return (args[0], boxed) if isinstance(returned, tuple) else boxed


def _check(name: str, arguments: Mapping[str, Any]) -> None:
    """RuntimeError for what gloo does not have."""
    called = name.rstrip("_")
    dtypes = {value.dtype for value in tree_leaves(list(arguments.values())) if isinstance(value, torch.Tensor)}
    lacking = [dtype for dtype in dtypes if dtype in _NOT_IN_GLOO or (called == "gather" and dtype.is_complex)]
    if lacking and name not in _POINT_TO_POINT:
        raise RuntimeError(f"{BACKEND}: gloo has no {called} of {lacking[0]}; convert it to another type first")


@final
class _Exchange:
    """The tensors of one collective: here and on the host.

    Args:
        results: what the operator returns besides the work, in the form in which it was given.
    """

    def __init__(self, results: Any) -> None:
        self.results = results
        self._written: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._lock = threading.Lock()

    def sent(self, value: Any, *, writes: bool) -> Any:
        """An argument with its tensors on the host, after the work on the current stream."""

        def moved(tensor: torch.Tensor) -> torch.Tensor:
            host = on_host(tensor) if tensor.device.type == NAME else tensor
            if writes and host.data_ptr() != tensor.data_ptr():
                self._written.append((tensor, host))
            return host

        return tree_map_only(torch.Tensor, moved, value)

    def finish(self) -> None:
        """Bring what came to the device, unless it is there."""
        with self._lock, torch.no_grad():
            written, self._written = self._written, []
            for tensor, host in written:
                tensor.copy_(host)
            if written:
                backend().synchronize()


@final
class _Work(dist.Work):
    """The work of a collective, as gloo does it; then the results are brought to the device, once.

    PyTorch's compiled code holds it without holding the object of Python, which has to live until it is asked: so it is
    `_unasked` until it is waited for, or its future is taken. Work made of a future would not say, when it is waited
    for, that it failed.
    """

    def __init__(self, work: Any, exchange: _Exchange) -> None:
        super().__init__()
        self._work = work
        self._exchange = exchange
        _unasked.add(self)

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Wait until the results are on the device; RuntimeError if the collective failed."""
        _unasked.discard(self)
        self._work.wait(timeout)
        self._exchange.finish()
        return True

    def get_future(self) -> Any:
        """A future of the device's tensors."""
        _unasked.discard(self)

        def results(done: Any) -> Any:
            done.value()  # raises what went wrong
            self._exchange.finish()
            return self._exchange.results

        return self._work.get_future().then(results)

    def is_completed(self) -> bool:
        """Whether the results are on the device."""
        done = bool(self._work.is_completed())
        if done:
            self._exchange.finish()
        return done

    def _source_rank(self) -> int:
        return int(self._work._source_rank())


_unasked: set[_Work] = set()
