"""Register the device in PyTorch: its name, its module and the kernels of its operators."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache, partial
from typing import Any

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from diopi_torch import accelerator, autocast, device, generators, guard, modules, pinned, sdpa, sparse, storage
from diopi_torch.composed import ComposedKernel
from diopi_torch.fallback import fall_back, reject_nested_tensors
from diopi_torch.indices import accept_cpu_indices
from diopi_torch.kernels import FALLTHROUGH, KERNELS
from diopi_torch.operators import decompositions, is_composed, kernels, overload, returns_view
from diopi_torch.recurrent import CELLS
from diopi_torch.settings import FORCE_FALLBACK, NAME, selected_operators

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
    """Return the operators that the environment forces to the CPU, as read in the first call.

    Returns:
        The names of the operators.

    Raises SettingError if the setting matches no operator.
    """
    return selected_operators(FORCE_FALLBACK, operator_names())


def is_name_free() -> bool:
    """Return whether no other package has registered its device as PyTorch's only device for extensions."""
    return torch._C._get_privateuse1_backend_name() in ("privateuseone", NAME)


def register() -> None:
    """Register the device; raise SettingError if the environment names unknown operators."""
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
    all_operators.fallback(fall_back, KEY)
    all_operators.fallback(reject_nested_tensors, f"NestedTensor{KEY}")
    for key in sparse.CPU_DISPATCH_KEYS:
        all_operators.fallback(fall_back, key)
        for name, kernel in sparse.kernels(key, operator_names()).items():
            aten.impl(name, kernel, key)
    for name, kernel in select_kernels(forced).items():
        aten.impl(name, kernel, KEY)
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

    An operator that is forced to the CPU gets a kernel that falls back to the CPU. A composed operator gets none,
    because its calls never reach the device. An operator that returns a view gets none either: it computes nothing,
    and its result on the CPU would be a copy.
    """
    overloads = {name: overload(name) for name in forced if name not in KERNELS}
    fallbacks = {
        name: partial(fall_back, operator)
        for name, operator in overloads.items()
        if not (is_composed(operator) or returns_view(operator))
    }
    table = {name: accept_cpu_indices(kernel.operator, kernel) for name, kernel in kernels().items()}
    composed = {name: ComposedKernel(overload(name), kernel) for name, kernel in decompositions().items()}
    return {**table, **composed, **fallbacks, **KERNELS}
