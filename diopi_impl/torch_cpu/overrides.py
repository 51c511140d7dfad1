"""Libraries that override operators of PyTorch: which operators they override, and which operators calls run.

PyTorch's dispatcher knows for each operator which kernel serves a device and where the kernel was registered. Kernels
that were registered while a library was set up belong to the library.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, final

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from diopi_impl.base import OperatorOverride, OperatorUse
from diopi_impl.errors import VendorError, VendorNotFoundError, describe_exception
from diopi_impl.importing import import_attribute
from lib_rt import Tensor

_REGISTRATION = re.compile(r"^(?P<key>\w+): registered at (?P<source>.+) \[(?P<kind>[^]]*)\]$", re.MULTILINE)
"""A line of the dispatch table of an operator: the key, and where its kernel was registered."""

_called_setups: dict[tuple[str, str], Sequence[OperatorOverride]] = {}
"""The overrides of each setup function that this process has called, by path and device type."""


def set_up_library(path: str, device: torch.device, vendor_name: str) -> Sequence[OperatorOverride]:
    """Call a function that sets up a library, once per process, and return the operators that the library overrides.

    Args:
        path: the function without arguments, as `module:function`.
        device: the device whose kernels are compared.
        vendor_name: the name of the vendor, for messages.

    Returns:
        The operators for which the library registered the kernel that serves the device.

    Raises:
        VendorNotFoundError: if there is no such function.
        VendorError: if the module can't be imported, or the function raises an exception.
    """
    called_before = _called_setups.get((path, device.type))
    if called_before is not None:
        return called_before
    old_registrations = _dump_registrations()
    subject = f"vendor {vendor_name}"
    function = import_attribute(path, subject)
    if not callable(function):
        raise VendorNotFoundError(f"{subject}: {path} is a {type(function).__name__}, expected a function")
    _call(function, f"{subject}: {path}")
    key = torch._C._dispatch_key_for_device(device.type)
    changed = {name: text for name, text in _dump_registrations().items() if old_registrations.get(name, text) != text}
    overrides = [
        OperatorOverride(operator=name, source=Path(source).name)
        for name, text in changed.items()
        if (source := _kernel_source(name, key)) not in old_registrations[name] and source in text
    ]
    return _called_setups.setdefault((path, device.type), overrides)


def _call(function: Callable[[], object], subject: str) -> None:
    """Call a setup function; raise VendorError if it raises an exception."""
    try:
        function()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the function may raise any exception, even SystemExit
        raise VendorError(f"{subject} raised {describe_exception(error)}") from error


def _dump_registrations() -> Mapping[str, str]:
    """Return the text in which PyTorch lists the kernels of an operator, by the name of the operator."""
    return {name: torch._C._dispatch_dump(name) for name in torch._C._dispatch_get_all_op_names()}


def _kernel_source(operator: str, key: str) -> str:
    """Return where the kernel that serves an operator for a dispatch key was registered."""
    lines = _REGISTRATION.finditer(torch._C._dispatch_dump_table(operator))
    return next((line["source"] for line in lines if line["key"] == key), "")


@final
class OperatorObserver:
    """An observer of the operators that calls run.

    It observes the first call of each function with each combination of element types.

    Args:
        overrides: the operators that a library overrides on the device.
    """

    def __init__(self, overrides: Sequence[OperatorOverride]) -> None:
        self.overrides = overrides
        self._sources = {override.operator: override.source for override in overrides}
        self._observed_calls: set[tuple[str, tuple[Any, ...]]] = set()
        self._known_uses: set[OperatorUse] = set()
        self._new_uses: list[OperatorUse] = []

    @contextmanager
    def observe(self, function: str, arguments: Sequence[Any]) -> Iterator[None]:
        """Observe a call of a standard function, if no similar call was observed before."""
        call = (function, tuple(argument.dtype for argument in arguments if isinstance(argument, Tensor)))
        if call in self._observed_calls:
            yield
            return
        self._observed_calls.add(call)
        mode = _OperatorMode()
        _observation.mode = mode
        try:
            yield
        finally:
            _observation.mode = _NOT_OBSERVED
            uses = (OperatorUse(function=function, operator=n, source=self._sources.get(n, "")) for n in mode.names)
            new_uses = [use for use in uses if use not in self._known_uses]
            self._known_uses.update(new_uses)
            self._new_uses += new_uses

    def take_uses(self) -> Sequence[OperatorUse]:
        """Return the uses that were not returned before."""
        uses, self._new_uses = self._new_uses, []
        return uses


@final
class _OperatorMode(TorchDispatchMode):
    """A mode of PyTorch that collects the names of the operators that reach a device."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, None] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Note the operator and run it."""
        self.names[func.name()] = None
        return func(*args, **(kwargs or {}))


_NOT_OBSERVED = nullcontext()
"""The context manager of calls that are not observed."""


@final
class _Observation(threading.local):
    """The mode of the call that a thread observes."""

    mode: AbstractContextManager[Any] = _NOT_OBSERVED


_observation = _Observation()
"""The observation of the current thread."""


def current_observation() -> AbstractContextManager[Any]:
    """Return a context manager that observes the operators of the current call, if the call is observed."""
    return _observation.mode
