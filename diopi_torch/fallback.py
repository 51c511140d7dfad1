"""Operators on the CPU, where the vendor does not serve them.

The arguments go to the CPU, what it returns comes back, and what the operator's schema says it writes is written back.
Where the host can address the device's memory, arguments need no copy.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

import torch

from diopi_proto.types import Number
from diopi_torch import dump
from diopi_torch.backend import backend
from diopi_torch.parts import is_sparse, with_parts, write
from diopi_torch.settings import NAME
from diopi_torch.tensors import is_ours, on_host, upload

HIDDEN_WRITES: Mapping[str, frozenset[str]] = {
    "aten::native_batch_norm": frozenset({"running_mean", "running_var"}),
}
"""Arguments that an operator writes although its schema does not say so."""

ASKS_FOR_GRADIENTS = frozenset({"aten::_sparse_mm_reduce_impl"})
"""Operators that compute for their gradients what they leave out where none are wanted."""

NUMBERS = (bool, int, float, complex)
"""What PyTorch gives a kernel in the place of tensors that it made of numbers."""

_counts: Counter[str] = Counter()
_lock = threading.Lock()


def fallbacks() -> Mapping[str, int]:
    """How often each operator ran on the CPU, by its name without `aten::`, most often first."""
    with _lock:
        return dict(_counts.most_common())


def reset_fallbacks() -> None:
    """Count anew."""
    with _lock:
        _counts.clear()


def count(operator: str) -> None:
    """Note that an operator ran on the CPU."""
    with _lock:
        _counts[operator] += 1


def operator_name(operator: torch._ops.OpOverload) -> str:
    """The name of an operator with its overload, if that has a name, without `aten::`."""
    name, overload = operator._schema.name.removeprefix("aten::"), operator._overloadname
    return name if overload == "default" else f"{name}.{overload}"


def fall_back(operator: torch._ops.OpOverload, *args: Any, **kwargs: Any) -> Any:
    """Call an operator of ATen on the CPU with tensors of the device.

    Raises what the operator raises; NotImplementedError if the CPU does not have it.
    """
    name = operator_name(operator)
    count(name)
    if dump.KEY in dump.environment:
        dump.dump_fallback(name, operator, args, kwargs)
    transfer = _Transfer(operator)
    transferred = transfer.sent(args, kwargs)
    returned = operator(**transferred)
    transfer.write_back()
    return transfer.received(returned)


def refuse_nested(operator: torch._ops.OpOverload, *args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: there are no nested tensors with sizes of their own."""
    raise NotImplementedError(
        f"{NAME} has no nested tensors, which {operator_name(operator)} takes or gives: make them with "
        "layout=torch.jagged, and a TransformerEncoder with enable_nested_tensor=False"
    )


class _Transfer:
    """One call's tensors: here and there."""

    def __init__(self, operator: torch._ops.OpOverload) -> None:
        self._operator = operator
        self._declared = operator._schema.arguments
        self._hidden = HIDDEN_WRITES.get(operator._schema.name, frozenset())
        self._pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._written: list[tuple[torch.Tensor, torch.Tensor]] = []

    def sent(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the CPU takes them, by name."""
        named = {argument.name: value for argument, value in zip(self._declared, args, strict=False)} | dict(kwargs)
        for argument in self._declared:
            if isinstance(argument.type, torch.TensorType) and isinstance(named.get(argument.name), NUMBERS):
                named[argument.name] = _tensor_of(named[argument.name], named.values())
        sent = {a.name: self._sent(a, named[a.name]) for a in self._declared if a.name in named}
        return sent | self._generator(named)

    def _sent(self, argument: Any, value: Any) -> Any:
        writes = argument.alias_info is not None and argument.alias_info.is_write
        if isinstance(value, torch.device):
            return torch.device("cpu") if value.type == NAME else value
        to_host = _empty_like if writes and argument.kwarg_only else on_host
        return _mapped(lambda tensor: self._paired(tensor, to_host, writes or argument.name in self._hidden), value)

    def _paired(
        self, tensor: torch.Tensor, to_host: Callable[[torch.Tensor], torch.Tensor], writes: bool
    ) -> torch.Tensor:
        if not is_ours(tensor):
            return tensor
        host = with_parts(tensor, on_host) if is_sparse(tensor) else to_host(tensor)
        if self._operator._schema.name in ASKS_FOR_GRADIENTS:
            host.requires_grad_(tensor.requires_grad)
        self._pairs.append((tensor, host))
        if writes:
            self._written.append((tensor, host))
        return host

    def _generator(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """A generator of the CPU, seeded by the device's: so seeding that seeds what falls back too."""
        if any(argument.name == "generator" for argument in self._declared) and arguments.get("generator") is None:
            return {"generator": host_generator()}
        return {}

    def write_back(self) -> None:
        """Bring what was written to the device."""
        for tensor, host in self._written:
            if is_sparse(tensor):
                write(tensor, with_parts(host, upload))
                continue
            if tensor.shape != host.shape:
                tensor.resize_(host.shape)
            if tensor.data_ptr() != host.data_ptr():
                tensor.copy_(host)

    def received(self, returned: Any) -> Any:
        """What the operator returned, on the device."""
        return _mapped(self._received, returned)

    def _received(self, returned: torch.Tensor) -> torch.Tensor:
        for tensor, host in self._pairs:
            if returned is host:
                return tensor
        if is_sparse(returned):
            return with_parts(returned, self._received)
        if returned.layout is not torch.strided:
            name = operator_name(self._operator)
            raise NotImplementedError(f"{NAME} has no tensors of the layout {returned.layout}, which {name} gives")
        storage = returned.untyped_storage().data_ptr()
        for tensor, host in self._pairs:
            if storage and not is_sparse(host) and storage == host.untyped_storage().data_ptr():
                offset = tensor.storage_offset() + returned.storage_offset() - host.storage_offset()
                return tensor.as_strided(returned.shape, returned.stride(), offset)
        return upload(returned) if returned.device.type == "cpu" else returned


def host_generator() -> torch.Generator:
    """A generator of the CPU whose numbers follow from the device's seed and how much was drawn."""
    generator = backend().generator
    generator.offset += 1
    host = torch.Generator()
    host.manual_seed((generator.seed * 0x9E3779B97F4A7C15 + generator.offset) % 2**63)
    return host


def _tensor_of(number: Number | complex, arguments: Iterable[Any]) -> torch.Tensor:
    """A number where an operator takes a tensor, of the element type that it gives the first of the others."""
    tensor = next(value for value in arguments if isinstance(value, torch.Tensor))
    return torch.tensor(number, dtype=torch.result_type(tensor, number))


def _empty_like(tensor: torch.Tensor) -> torch.Tensor:
    """What an operator resizes and writes for `tensor`: memory that is not its own it could not resize."""
    return torch.empty(0, dtype=tensor.dtype)


def _mapped(function: Callable[[torch.Tensor], torch.Tensor], value: Any) -> Any:
    """A value with each tensor replaced."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, list | tuple):
        return type(value)([_mapped(function, entry) for entry in value])
    return value
