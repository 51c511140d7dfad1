"""Register the device in PyTorch: its name, its module and the kernels of its operators."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection
from functools import cache, partial, wraps
from typing import Any

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from diopi_torch import accelerator, autocast, device, generators, guard, modules, pinned, sdpa, sparse, storage
from diopi_torch.backend import backend
from diopi_torch.composed import ComposedKernel
from diopi_torch.fallback import compose_on_cpu, fall_back, fall_back_as_forced, reject_nested_tensors
from diopi_torch.indices import accept_cpu_indices
from diopi_torch.kernels import COPIES_BETWEEN_DEVICES, FALLTHROUGH, KERNELS
from diopi_torch.operators import decompositions, is_composed, kernels, overload, returns_view, written_outputs
from diopi_torch.placement import run_on_device_of_tensors
from diopi_torch.recurrent import CELLS
from diopi_torch.settings import (
    CPU_AFFINITY,
    FORCE_FALLBACK,
    KEEP_DEFAULT,
    NAME,
    SYNCHRONOUS,
    SettingError,
    forced_expressions,
    is_switched_on,
    matching_operators,
    selected_operators,
)

KEY = "PrivateUse1"
"""PyTorch's dispatch key for kernels of the device."""

_libraries: list[torch.library.Library] = []
"""References that keep the registrations alive."""


def operator_names() -> Collection[str]:
    """Return the names of all operators of ATen, without `aten::` and with the overload unless it is the default."""
    names = torch._C._dispatch_get_all_op_names()
    return [name.removeprefix("aten::").removesuffix(".") for name in names if name.startswith("aten::")]


@cache
def forced_operators() -> frozenset[str]:
    """Return the names of the operators that the user forces to the CPU, as read in the first call.

    An overload with output arguments, such as `add.out`, also selects the overloads that compute the same, such as
    `add.Tensor` and `add_.Tensor`, because most devices implement only the former.

    Raises SettingError if an expression of a setting matches no operator.
    """
    matching = matching_operators(FORCE_FALLBACK, ",".join(forced_expressions()), operator_names())
    rows = {kernels()[name].row.operator for name in matching & kernels().keys() if written_outputs(overload(name))}
    return matching | {name for name, kernel in kernels().items() if kernel.row.operator in rows}


@cache
def default_operators() -> frozenset[str]:
    """Return the names of the operators that get no kernel at the user's request, as read in the first call.

    Raises SettingError if an expression of the setting matches no operator.
    """
    return selected_operators(KEEP_DEFAULT, operator_names())


def is_name_free() -> bool:
    """Return whether no other package has registered its device as PyTorch's only device for extensions."""
    return torch._C._get_privateuse1_backend_name() in ("privateuseone", NAME)


def set_cpu_affinity() -> None:
    """Let this process run only on its share of the CPUs, if `CPU_AFFINITY` requests it.

    The processes of a machine divide its CPUs evenly, in the order of their ranks. A launcher such as `torchrun` states
    the rank and the number of processes on this machine in `LOCAL_RANK` and `LOCAL_WORLD_SIZE`. Without a launcher, or
    with more processes than CPUs, nothing changes.

    Raises:
        SettingError: The value is not that of a switch, or the operating system can't restrict a process to CPUs.
    """
    if not is_switched_on(CPU_AFFINITY):
        return
    if not hasattr(os, "sched_setaffinity"):
        raise SettingError(f"{CPU_AFFINITY}: {sys.platform} can't restrict a process to CPUs")
    rank, processes = (
        int(os.environ.get(name, default)) for name, default in (("LOCAL_RANK", 0), ("LOCAL_WORLD_SIZE", 1))
    )
    cpus = sorted(os.sched_getaffinity(0))
    share = len(cpus) // processes
    if share:
        os.sched_setaffinity(0, cpus[rank * share : (rank + 1) * share])


def register() -> None:
    """Register the device; raise SettingError if an environment variable has an invalid value."""
    set_cpu_affinity()
    forced = forced_operators()
    _setup_privateuseone_for_python_backend(NAME, device, device_guard=guard.DeviceGuard())
    guard.install()
    device.install()
    storage.install()
    generators.install()
    modules.install()
    accelerator.install()
    all_operators, aten = torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")
    _libraries.extend((all_operators, aten))
    placed_fallback = run_on_device_of_tensors(fall_back)
    all_operators.fallback(placed_fallback, KEY)
    all_operators.fallback(reject_nested_tensors, f"NestedTensor{KEY}")
    for key in sparse.CPU_DISPATCH_KEYS:
        all_operators.fallback(placed_fallback, key)
        for name, kernel in sparse.kernels(key, operator_names()).items():
            aten.impl(name, run_on_device_of_tensors(kernel), key)
    for name, kernel in select_kernels(forced).items():
        aten.impl(name, finish_kernel(kernel, copies_between_devices=name in COPIES_BETWEEN_DEVICES), KEY)
    for name, kernel in forced_compositions().items():
        for key in (KEY, f"Autograd{KEY}"):
            aten.impl(name, finish_kernel(kernel), key)
    for name, composed in {**CELLS, **sdpa.ABOVE_AUTOGRAD}.items():
        aten.impl(name, composed, f"Autograd{KEY}")
    for name, composed in {**sdpa.ON_CPU, **pinned.ON_CPU}.items():
        aten.impl(name, composed, "CPU")
    all_operators.fallback(torch.library.fallthrough_kernel, autocast.KEY)
    autocast.install(aten)
    for name, keys in FALLTHROUGH.items():
        for key in keys:
            aten.impl(name, torch.library.fallthrough_kernel, key)
    if torch.distributed.is_available():
        from diopi_torch import collectives

        _libraries.append(torch.library.Library("c10d", "IMPL"))
        collectives.install(_libraries[-1])


def select_kernels(forced: Collection[str]) -> dict[str, Callable[..., Any]]:
    """Return the kernels by operator.

    An operator that is forced to the CPU gets a kernel that falls back to the CPU. A composed operator gets none here,
    because its calls never reach the device: see `forced_compositions`. An operator that returns a view gets none
    either: it computes nothing, and its result on the CPU would be a copy. The operators that `KEEP_DEFAULT` selects
    lose their kernels, so that PyTorch composes them of other operators, or they fall back to the CPU.
    """
    overloads = {name: overload(name) for name in forced if name not in KERNELS}
    fallbacks = {
        name: partial(fall_back_as_forced, operator)
        for name, operator in overloads.items()
        if not (is_composed(operator) or returns_view(operator))
    }
    table = {name: accept_cpu_indices(kernel.operator, kernel) for name, kernel in kernels().items()}
    composed = {name: ComposedKernel(overload(name), kernel) for name, kernel in decompositions().items()}
    derived: dict[str, Callable[..., Any]] = {**table, **composed}
    derived = {name: kernel for name, kernel in derived.items() if name not in default_operators()}
    return {**derived, **fallbacks, **KERNELS}


def forced_compositions() -> dict[str, Callable[..., Any]]:
    """Return the kernels of the composed operators that the user forces to the CPU by their whole names.

    PyTorch has to call them above autograd. An expression that matches several operators selects no composed operator,
    because it also selects those of which PyTorch composes it. Operators that write their arguments, return a view or
    take no tensor are left to PyTorch.
    """
    named = {name: overload(name) for name in forced_operators().intersection(forced_expressions())}
    return {
        name: partial(compose_on_cpu, operator)
        for name, operator in named.items()
        if is_composed(operator) and not (name in HIDDEN_WRITES or _aliases(operator)) and _computes_tensor(operator)
    }


HIDDEN_WRITES = frozenset({"batch_norm", "instance_norm", "_batch_norm_impl_index"})
"""Composed operators that write running statistics, which their schemas do not declare."""


def _aliases(operator: torch._ops.OpOverload) -> bool:
    """Return whether an operator writes arguments or returns them or views of them, as its schema declares."""
    declared = [*operator._schema.arguments, *operator._schema.returns]
    return any(argument.alias_info is not None for argument in declared)


def _computes_tensor(operator: torch._ops.OpOverload) -> bool:
    """Return whether an operator takes and returns at least one tensor."""
    schema = operator._schema
    return all(any("Tensor" in str(part.type) for part in parts) for parts in (schema.arguments, schema.returns))


def finish_kernel(kernel: Callable[..., Any], *, copies_between_devices: bool = False) -> Callable[..., Any]:
    """Return a kernel as it is registered: it runs on the device of its tensors.

    With `SYNCHRONOUS`, it also waits until the device has performed the operator.

    Args:
        kernel: the kernel.
        copies_between_devices: whether its tensors may be on different devices.
    """
    if not is_switched_on(SYNCHRONOUS):
        return run_on_device_of_tensors(kernel, copies_between_devices=copies_between_devices)

    @wraps(kernel)
    def run_and_wait(*args: Any, **kwargs: Any) -> Any:
        """Run the operator and wait for the stream."""
        result = kernel(*args, **kwargs)
        backend().stream.synchronize()
        return result

    return run_on_device_of_tensors(run_and_wait, copies_between_devices=copies_between_devices)
