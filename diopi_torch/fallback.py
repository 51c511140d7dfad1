"""Run operators on the CPU if the vendor does not support them.

If the host can address the device's memory, the CPU reads and writes the arguments directly, unless they overlap.
Otherwise it receives copies, and the arguments that the operator writes according to its schema are copied back. The
results are copied to the device.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import torch

from diopi_proto.types import Number
from diopi_torch import dump
from diopi_torch.backend import backend
from diopi_torch.overlap import HostMemory, find_overlap, write_storage
from diopi_torch.parts import is_sparse, overwrite, replace_parts
from diopi_torch.settings import FALLBACK_FILE, FORCE_FALLBACK, LOG_FALLBACK, NAME, is_switched_on
from diopi_torch.tensors import is_on_device, read_to_host, upload

HIDDEN_WRITES: Mapping[str, frozenset[str]] = {
    "aten::native_batch_norm": frozenset({"running_mean", "running_var"}),
}
"""Arguments that an operator writes although its schema does not declare it."""

READS_REQUIRES_GRAD = frozenset({"aten::_sparse_mm_reduce_impl"})
"""Operators that skip results needed only for gradients unless gradients are requested."""

NUMBERS = (bool, int, float, complex)
"""Types of numbers that PyTorch may pass to a kernel instead of tensors."""

FORCED = f"{FORCE_FALLBACK} or the file {FALLBACK_FILE} selects it"
"""The reason for a fallback that the user forces."""

_counts: Counter[str] = Counter()
"""How often each operator ran on the CPU."""

_lock = threading.Lock()
"""Protects `_counts`."""


def fallbacks() -> Mapping[str, int]:
    """Return how often each operator ran on the CPU, by operator name without `aten::`, most frequent first."""
    with _lock:
        return dict(_counts.most_common())


def reset_fallbacks() -> None:
    """Reset the counts of `fallbacks`."""
    with _lock:
        _counts.clear()


def count_fallback(operator: str) -> None:
    """Count a run of an operator on the CPU."""
    with _lock:
        _counts[operator] += 1


def operator_name(operator: torch._ops.OpOverload) -> str:
    """Return the name of an operator without `aten::`, with its overload unless that is the default."""
    name, overload = operator._schema.name.removeprefix("aten::"), operator._overloadname
    return name if overload == "default" else f"{name}.{overload}"


def fall_back(operator: torch._ops.OpOverload, *args: Any, **kwargs: Any) -> Any:
    """Return what an operator returns on the CPU, because the device has no kernel for it; see `run_on_cpu`."""
    return run_on_cpu("the device has no kernel for it", operator, args, kwargs)


def fall_back_as_forced(operator: torch._ops.OpOverload, *args: Any, **kwargs: Any) -> Any:
    """Return what an operator returns on the CPU, because the user forces it to fall back; see `run_on_cpu`."""
    return run_on_cpu(FORCED, operator, args, kwargs)


def run_on_cpu(reason: str, operator: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call an operator of ATen on the CPU with tensors of the device.

    Errors of the operator propagate. If the CPU does not have the operator, PyTorch raises NotImplementedError.

    Args:
        reason: the reason for the fallback, which the switch `LOG_FALLBACK` prints to stderr.
        operator: the operator.
        args: its positional arguments.
        kwargs: its keyword arguments.

    Returns:
        The results, with tensors on the device.
    """
    _report_fallback(reason, operator, args, kwargs)
    named = named_arguments(operator, args, kwargs)
    overlaps = operator._schema.is_mutable and find_overlap(operator, named)
    transfer = _CpuTransfer(operator, HostMemory() if overlaps else None)
    transferred = transfer.send_to_host(named)
    returned = operator(**transferred)
    transfer.write_back()
    return transfer.return_to_device(returned)


def compose_on_cpu(operator: torch._ops.OpOverload, *args: Any, **kwargs: Any) -> Any:
    """Call a composite operator on the CPU that the user forces to fall back, so that gradients run there, too.

    The operator must not write its arguments, nor return a view. Errors of the operator propagate.

    Args:
        operator: the operator, which PyTorch composes of others above autograd.
        args: its positional arguments.
        kwargs: its keyword arguments.

    Returns:
        The results on the device. Their gradients pass through the copies to the CPU and back.
    """
    _report_fallback(FORCED, operator, args, kwargs)
    copies: list[tuple[torch.Tensor, torch.Tensor]] = []

    def to_cpu(tensor: torch.Tensor) -> torch.Tensor:
        """Return a differentiable copy of a tensor on the device; return any other tensor unchanged."""
        if not is_on_device(tensor):
            return tensor
        copies.append((tensor, tensor.cpu()))
        return copies[-1][1]

    def to_device(returned: torch.Tensor) -> torch.Tensor:
        """Return the argument whose copy the operator returned, or a differentiable copy of a result."""
        originals = [tensor for tensor, copy in copies if returned is copy]
        return originals[0] if originals else returned.to(torch.device(NAME, backend().index))

    named = _map_tensors(to_cpu, list(named_arguments(operator, args, kwargs).items()))
    return _map_tensors(to_device, operator(**dict(named)))


def _report_fallback(
    reason: str, operator: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Count a run of an operator on the CPU, and print it if the environment requests it; see `run_on_cpu`."""
    name = operator_name(operator)
    count_fallback(name)
    if is_switched_on(LOG_FALLBACK):
        print(f"{name} runs on the CPU: {reason}", file=sys.stderr, flush=True)
    if dump.KEY in dump.environment:
        dump.dump_fallback(name, operator, args, kwargs)


def check_on_cpu(operator: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Run a call on the CPU with copies of the tensors, only to raise the error that PyTorch raises for invalid calls.

    If the CPU does not have the operator, nothing is checked.

    Args:
        operator: the operator.
        args: its positional arguments.
        kwargs: its keyword arguments.
    """
    named = named_arguments(operator, args, kwargs)
    if _takes_generator(operator) and named.get("generator") is None:
        named["generator"] = torch.Generator()
    transferred = _CpuTransfer(operator, HostMemory()).send_to_host(named)
    with suppress(NotImplementedError):
        operator(**transferred)


def named_arguments(operator: torch._ops.OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by name, without those that the call omits."""
    names = [argument.name for argument in operator._schema.arguments]
    return {**dict(zip(names, args, strict=False)), **kwargs}


def default_arguments(operator: torch._ops.OpOverload) -> dict[str, Any]:
    """Return the default values of all arguments by name, in order; None for an argument without a default."""
    return {argument.name: argument.default_value for argument in operator._schema.arguments}


def _takes_generator(operator: torch._ops.OpOverload) -> bool:
    """Return whether an operator has an argument for a random generator."""
    return any(argument.name == "generator" for argument in operator._schema.arguments)


def reject_nested_tensors(operator: torch._ops.OpOverload, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: the device does not support nested tensors."""
    raise NotImplementedError(
        f"{NAME} has no nested tensors, which {operator_name(operator)} takes or returns: create them with "
        "layout=torch.jagged, and a TransformerEncoder with enable_nested_tensor=False"
    )


class _CpuTransfer:
    """The tensors of one call on the device and on the CPU.

    Args:
        operator: the operator.
        memory: the memory of the CPU tensors if they overlap as on the device; otherwise all memory is separate.
    """

    def __init__(self, operator: torch._ops.OpOverload, memory: HostMemory | None) -> None:
        self._operator = operator
        self._memory = memory
        self._declared = operator._schema.arguments
        self._hidden = HIDDEN_WRITES.get(operator._schema.name, frozenset())
        self._pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._written: list[tuple[torch.Tensor, torch.Tensor]] = []

    def send_to_host(self, named: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments for the CPU by name; numbers in place of tensors are replaced in `named`, too."""
        for argument in self._declared:
            if isinstance(argument.type, torch.TensorType) and isinstance(named.get(argument.name), NUMBERS):
                named[argument.name] = _tensor_from_number(named[argument.name], named.values())
        sent = {a.name: self._argument_to_host(a, named[a.name]) for a in self._declared if a.name in named}
        return sent | self._generator_arguments(named)

    def _argument_to_host(self, argument: Any, value: Any) -> Any:
        """Return an argument for the CPU, with its tensors and devices replaced."""
        writes = argument.alias_info is not None and argument.alias_info.is_write
        if isinstance(value, torch.device):
            return torch.device("cpu") if value.type == NAME else value
        to_host = _empty_like if writes and argument.kwarg_only else read_to_host
        to_host = to_host if self._memory is None else self._memory.copy
        return _map_tensors(
            lambda tensor: self._pair_with_host(tensor, to_host, writes or argument.name in self._hidden), value
        )

    def _pair_with_host(
        self, tensor: torch.Tensor, to_host: Callable[[torch.Tensor], torch.Tensor], writes: bool
    ) -> torch.Tensor:
        """Return the CPU tensor for a device tensor, and record the pair; return tensors of other devices unchanged.

        Args:
            tensor: The tensor.
            to_host: Returns the CPU tensor for a dense device tensor.
            writes: Whether the operator may write the tensor.
        """
        if not is_on_device(tensor):
            return tensor
        host = replace_parts(tensor, read_to_host) if is_sparse(tensor) else to_host(tensor)
        if self._operator._schema.name in READS_REQUIRES_GRAD:
            host.requires_grad_(tensor.requires_grad)
        self._pairs.append((tensor, host))
        if writes:
            self._written.append((tensor, host))
        return host

    def _generator_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return a CPU generator by the name `generator` if the operator takes one and the call has none, else nothing.

        The device's generator seeds it, so that a seed of the device also determines the results of a fallback.
        """
        if _takes_generator(self._operator) and arguments.get("generator") is None:
            return {"generator": host_generator()}
        return {}

    def write_back(self) -> None:
        """Copy written arguments to the device."""
        for tensor, host in self._written:
            if is_sparse(tensor):
                overwrite(tensor, replace_parts(host, upload))
                continue
            if tensor.shape != host.shape:
                tensor.resize_(host.shape)
            if self._memory is not None:
                write_storage(tensor, host)
            elif tensor.data_ptr() != host.data_ptr():
                torch.ops.aten._copy_from(host, tensor)  # not copy_, which may itself be running on the CPU

    def return_to_device(self, returned: Any) -> Any:
        """Return the operator's results on the device."""
        return _map_tensors(self._tensor_to_device, returned)

    def _tensor_to_device(self, returned: torch.Tensor) -> torch.Tensor:
        """Return the device's tensor for a returned CPU tensor: an argument, a view of an argument, or a copy.

        Raises:
            NotImplementedError: The device does not support the layout of the returned tensor.
        """
        for tensor, host in self._pairs:
            if returned is host:
                return tensor
        if is_sparse(returned):
            return replace_parts(returned, self._tensor_to_device)
        if returned.layout is not torch.strided:
            name = operator_name(self._operator)
            raise NotImplementedError(
                f"{name} returns a tensor of layout {returned.layout}, which {NAME} does not support"
            )
        storage = returned.untyped_storage().data_ptr()
        for tensor, host in self._pairs:
            if storage and not is_sparse(host) and storage == host.untyped_storage().data_ptr():
                offset = tensor.storage_offset() + returned.storage_offset() - host.storage_offset()
                return tensor.as_strided(returned.shape, returned.stride(), offset)
        return upload(returned) if returned.device.type == "cpu" else returned


def host_generator() -> torch.Generator:
    """Return a CPU generator whose seed depends on the seed and position of the device's generator."""
    generator = backend().generator
    generator.offset += 1
    host = torch.Generator()
    host.manual_seed((generator.seed * 0x9E3779B97F4A7C15 + generator.offset) % 2**63)
    return host


def _tensor_from_number(number: Number | complex, arguments: Iterable[Any]) -> torch.Tensor:
    """Return a number as a tensor, with the element type to which PyTorch promotes it and the first tensor."""
    tensor = next(value for value in arguments if isinstance(value, torch.Tensor))
    return torch.tensor(number, dtype=torch.result_type(tensor, number))


def _empty_like(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same form in place of `tensor` that an operator can resize, because it owns its memory."""
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)


def _map_tensors(function: Callable[[torch.Tensor], torch.Tensor], value: Any) -> Any:
    """Return a value with each tensor in it, also in nested lists, replaced by the function's result."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, list | tuple):
        return type(value)([_map_tensors(function, entry) for entry in value])
    return value
