"""Run programs that were written for CUDA on the device, without changing the programs.

After `as_cuda`, the device "cuda" and the names in `torch.cuda` mean the device of this package. A TorchFunctionMode
replaces CUDA devices in the arguments of PyTorch's functions. Functions and classes that a mode does not see, such as
`torch.Generator` and `torch.load`, are wrapped.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from diopi_torch import device, generators
from diopi_torch.settings import MOCK_CUDA, NAME, REPORT_CUDA, is_switched_on

CUDA_BACKENDS = ("nccl", "cuda:nccl", "cpu:gloo,cuda:nccl")
"""The distributed backends of programs for CUDA."""

COLLECTIVES = "dicl"
"""The distributed backend of the device, which also transfers tensors on the CPU."""

CHECKPOINT_PRIORITY = 5
"""The priority of `_load_cuda_storage`; PyTorch's own functions for storages run later, because theirs start at 10."""

_thread = threading.local()
"""Has an attribute `mode`, the active mode, in the threads that have called `as_cuda`."""


def as_cuda() -> None:
    """Let the device "cuda" and `torch.cuda` mean the device of this package until the process ends.

    `is_cuda` is true for tensors on the device. Their attribute `device` still reports `diopi`, unless the environment
    variable DIPU_PYTHON_DEVICE_AS_CUDA is 1. PyTorch keeps modes per thread: each other thread that names "cuda" has to
    call this function, too.

    Raises:
        RuntimeError: PyTorch itself supports CUDA or ROCm devices.
        SettingError: DIPU_PYTHON_DEVICE_AS_CUDA is not the value of a switch.
    """
    for platform, version in (("CUDA", torch.version.cuda), ("ROCm", torch.version.hip)):
        if version is not None:
            raise RuntimeError(f'this PyTorch is built for {platform} {version}, so "cuda" can\'t mean {NAME}')
    _replace_names()
    if not hasattr(_thread, "mode"):
        _thread.mode = CudaMode(REPLACEMENTS | REPORTING if is_switched_on(REPORT_CUDA) else REPLACEMENTS)
        _thread.mode.__enter__()


@functools.cache
def _replace_names() -> None:
    """Replace the functions, classes and modules that a mode can't intercept; later calls do nothing."""
    _replace_module()
    _wrap_functions()
    torch.serialization.register_package(CHECKPOINT_PRIORITY, lambda storage: None, _load_cuda_storage)


def as_cuda_from_environment() -> None:
    """Call `as_cuda` if the environment requests it; raise SettingError if the value is no switch."""
    if is_switched_on(MOCK_CUDA):
        as_cuda()


def translate(value: Any) -> Any:
    """Return the device of this package for a CUDA device, in the same notation; return any other value unchanged.

    For example, `"cuda:0"` becomes `"diopi:0"`, and `torch.device("cuda")` becomes `torch.device("diopi")`.
    """
    if type(value) is torch.device and value.type == "cuda":
        return torch.device(NAME) if value.index is None else torch.device(NAME, value.index)
    if type(value) is str and re.fullmatch(r"cuda(:\d+)?", value):
        return value.replace("cuda", NAME)
    return value


def call_translated(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return what a function returns for arguments with the device of this package in place of CUDA devices."""
    return function(*map(translate, args), **{name: translate(value) for name, value in kwargs.items()})


class CudaMode(TorchFunctionMode):
    """Replaces CUDA devices in the arguments of PyTorch's functions and methods.

    Args:
        replacements: functions to call instead of functions, methods and properties of PyTorch.
    """

    def __init__(self, replacements: Mapping[Any, Callable[..., Any]]) -> None:
        super().__init__()
        self._replacements = replacements

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call `func`, or its replacement, with the device of this package in place of CUDA."""
        replacement = self._replacements.get(func)
        if replacement is not None:
            return replacement(*args, **(kwargs or {}))
        return call_translated(func, args, kwargs or {})


def _move_to_device(
    tensor: torch.Tensor, device: Any = None, non_blocking: bool = False, **kwargs: Any
) -> torch.Tensor:
    """Return the result of `tensor.cuda(device, non_blocking, memory_format)` on the device of this package.

    An integer `device` is the number of a device of this package, not of a CUDA device.
    """
    target = torch.device(NAME, device) if isinstance(device, int) else translate(NAME if device is None else device)
    return tensor.to(target, non_blocking=non_blocking, **kwargs)


def _is_on_device(tensor: torch.Tensor, *_: object) -> bool:
    """Return whether a tensor is on the device, which is the value of `is_cuda`."""
    return tensor.device.type == NAME


REPLACEMENTS: dict[Any, Callable[..., Any]] = {
    torch.Tensor.cuda: _move_to_device,
    torch.Tensor.is_cuda.__get__: _is_on_device,  # type: ignore[attr-defined]  # a property of a type in C
}
"""The functions that `CudaMode` calls instead of methods and properties of tensors."""


def _reported_device(tensor: torch.Tensor, *_: object) -> torch.device:
    """Return the CUDA device with the number of a tensor's device, or the device itself if it is another one."""
    actual = tensor.device
    return torch.device("cuda", actual.index) if actual.type == NAME else actual


def _format_tensor(tensor: torch.Tensor, **kwargs: Any) -> str:
    """Return the text of a tensor with "cuda" as the name of the device."""
    return torch._tensor_str._str(tensor, **kwargs).replace(f"device='{NAME}:", "device='cuda:")


REPORTING: dict[Any, Callable[..., Any]] = {
    torch.Tensor.device.__get__: _reported_device,  # a property of a type in C
    torch.Tensor.__repr__: _format_tensor,
    torch.device: torch.device,  # devices keep the name that the program gave them
}
"""Further replacements, with which tensors and devices report the name "cuda"."""


def _replace_module() -> None:
    """Replace the public functions and classes of `torch.cuda` by those with the same name in `diopi_torch.device`.

    The functions that initialize CUDA open the device instead.
    """
    modules: list[Any] = [torch.cuda, torch.cuda.memory, torch.cuda.random, torch.cuda.streams]
    for module in modules:
        for name in dir(module):
            if not name.startswith("_") and hasattr(device, name) and getattr(device, name) is not torch:
                setattr(module, name, getattr(device, name))
    torch.cuda.init = torch.cuda._lazy_init = device._lazy_init
    torch.cuda._is_in_bad_fork = device._is_in_bad_fork
    torch.cuda.is_tf32_supported = lambda: False


def _translating(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a wrapper of a function that replaces CUDA devices in its arguments by the device of this package."""

    @functools.wraps(function)
    def translated(*args: Any, **kwargs: Any) -> Any:
        """Call the function with translated arguments."""
        return call_translated(function, args, kwargs)

    return translated


def _wrap_functions() -> None:
    """Wrap the functions and constructors that take a device but that a mode can't intercept."""
    functions: list[tuple[Any, str]] = [
        *((torch, name) for name in dir(torch) if name.endswith(("_autocast_dtype", "_autocast_enabled"))),
        (torch, "set_default_device"),
        (device, "_device_index"),  # all functions of `torch.cuda` read devices with it
        (torch, "get_device_module"),
        (torch.amp, "is_autocast_available"),
        (torch.autocast, "__init__"),
    ]
    for owner, name in functions:
        setattr(owner, name, _translating(getattr(owner, name)))
    _wrap_scaler()
    torch.Generator = _Generator  # type: ignore[misc]  # the replacement is intended
    torch.load = _load(torch.load)
    if torch.distributed.is_available():
        for name in ("init_process_group", "new_group"):
            setattr(torch.distributed, name, _with_backend(getattr(torch.distributed, name)))


def _wrap_scaler() -> None:
    """Wrap the constructor of `GradScaler`, whose default is CUDA."""
    initialize = torch.amp.GradScaler.__init__

    @functools.wraps(initialize)
    def initialize_for(self: torch.amp.GradScaler, device: str = "cuda", *args: Any, **kwargs: Any) -> None:
        """Create the scaler for a device, by default for the device of this package."""
        initialize(self, translate(device), *args, **kwargs)

    torch.amp.GradScaler.__init__ = initialize_for  # type: ignore[method-assign]  # the replacement is intended


class _GeneratorType(generators.GeneratorType):
    """The type of a class that also creates generators of the device for "cuda"."""

    def __call__(cls, device: Any = "cpu") -> torch.Generator:  # noqa: N805 - the class of a metaclass
        """Return a new generator for the device, which may be the CPU."""
        return super().__call__(translate(device))


class _Generator(generators.ORIGINAL, metaclass=_GeneratorType):
    """`torch.Generator`, for which "cuda" means the device of this package."""


def _load(load: Callable[..., Any]) -> Callable[..., Any]:
    """Return `torch.load`, wrapped so that its `map_location` can name CUDA."""

    @functools.wraps(load)
    def load_translated(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Load a checkpoint with translated targets in `map_location`."""
        if isinstance(map_location, Mapping):
            map_location = {source: translate(target) for source, target in map_location.items()}
        return load(f, translate(map_location), *args, **kwargs)

    return load_translated


def _load_cuda_storage(storage: Any, location: str) -> Any:
    """Return a storage of a checkpoint on the device if it was saved on a CUDA device; otherwise None."""
    target = translate(location)
    return storage.to(torch.device(target)) if target != location else None


def _with_backend(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that creates a process group, wrapped so that it uses the device's collectives for NCCL."""

    @functools.wraps(function)
    def translated(*args: Any, **kwargs: Any) -> Any:
        """Call the function with `dicl` in place of NCCL and with the device of this package in place of CUDA."""
        args = tuple(COLLECTIVES if isinstance(value, str) and value in CUDA_BACKENDS else value for value in args)
        if kwargs.get("backend") in CUDA_BACKENDS:
            kwargs["backend"] = COLLECTIVES
        return call_translated(function, args, kwargs)

    return translated
