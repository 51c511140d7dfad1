"""The samples of PyTorch's databases of operators, modules and optimizers, as calls for any device."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import torch

from diopi_torch.conformance.trees import TensorChange, TensorCopies, map_tensors, tensors_of

DATABASES = ("op", "module", "optim")
"""The names of the databases."""

DTYPES = ("float32", "bfloat16", "complex64", "int64", "bool")
"""The element types of samples."""

ARGUMENTS_ON_CPU = ("tensor_split",)
"""Operators whose arguments, except for the first one, must be on the CPU, whatever the device is."""

STEPS = 3
"""Number of steps of an optimizer in a sample."""

DeviceCall = Callable[[str, int], Any]
"""A function of a device and a seed that performs a call there and returns a value that contains tensors."""


@dataclass(frozen=True, kw_only=True)
class SampleCall:
    """A call with the arguments of one sample.

    Attributes:
        call: performs the call.
        exact_call: performs the call in double precision, with float64 in place of float32 and bfloat16, and complex128
            in place of complex64; None if there is no such call.
        error: the expected part of the error message as a regular expression; empty if the sample is valid.
    """

    call: DeviceCall
    exact_call: DeviceCall | None = None
    error: str = ""


def make_noncontiguous(tensor: torch.Tensor) -> torch.Tensor:
    """Return an equal tensor with gaps between its elements; return a tensor that is not strided unchanged."""
    if tensor.layout is not torch.strided:
        return tensor
    return torch.stack((tensor, tensor.detach()), -1)[..., 0]


def make_conjugated(tensor: torch.Tensor) -> torch.Tensor:
    """Return an equal tensor; if it is complex, it is a lazily conjugated view of the stored conjugates."""
    if tensor.layout is not torch.strided or not tensor.is_complex():
        return tensor
    return torch.conj_physical(tensor).conj()


def copy_if_differentiable(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy if the tensor requires a gradient, so that operators can write it in place."""
    return tensor.clone() if tensor.requires_grad else tensor


CHANGES: Mapping[str, TensorChange] = {
    "plain": copy_if_differentiable,
    "noncontiguous": make_noncontiguous,
    "conjugated": make_conjugated,
}
"""The forms of valid samples, with the function that changes each tensor of a sample."""

ERRORS = "error"
"""The form of invalid samples, which raise exceptions."""


@dataclass(frozen=True, kw_only=True)
class SampleGroup:
    """The samples of one entry of a database, in one form and element type.

    Attributes:
        database: `op`, `module` or `optim`.
        entry: the name of the operator, module or optimizer.
        form: a key of `CHANGES`, or `ERRORS`.
        dtype: the name of the element type.
    """

    database: str
    entry: str
    form: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.database} {self.entry} {self.form} {self.dtype}"


@cache
def databases() -> Mapping[str, Mapping[str, Any]]:
    """Return the entries of each database by name; the import takes seconds and needs the package `expecttest`."""
    from torch.testing._internal import common_methods_invocations, common_modules, common_optimizers

    # Samples of random operators set the seed themselves, which would hide that the operators are random.
    vars(common_methods_invocations)["wrapper_set_seed"] = lambda operator, *args, **kwargs: operator(*args, **kwargs)
    return {
        "op": {full_name(entry): entry for entry in common_methods_invocations.op_db},
        "module": {entry.name: entry for entry in common_modules.module_db},
        "optim": {entry.name: entry for entry in common_optimizers.optim_db},
    }


def full_name(operator: Any) -> str:
    """Return the name of an operator with its variant."""
    return ".".join(filter(None, (operator.name, operator.variant_test_name)))


def sample_groups(dtypes: Sequence[str]) -> Iterator[SampleGroup]:
    """Yield all groups of samples in these element types; samples with errors belong to float32."""
    for database, entries in databases().items():
        for name, entry in entries.items():
            for dtype in dtypes:
                if _supports(database, entry, getattr(torch, dtype)):
                    for form in _forms(database, dtype):
                        yield SampleGroup(database=database, entry=name, form=form, dtype=dtype)


def _supports(database: str, entry: Any, dtype: torch.dtype) -> bool:
    """Return whether the CPU supports an entry in an element type."""
    if database == "op":
        return bool(entry.supports_dtype(dtype, "cpu"))
    if database == "module":
        return dtype in entry.supported_dtypes("cpu")
    return dtype.is_floating_point or (dtype.is_complex and entry.supports_complex)


def _forms(database: str, dtype: str) -> Iterator[str]:
    """Yield the forms of an entry's samples in an element type."""
    yield "plain"
    if database != "optim":
        yield "noncontiguous"
    if database == "op" and dtype == "complex64":
        yield "conjugated"
    if dtype == "float32":
        yield ERRORS


def samples_of(group: SampleGroup) -> list[SampleCall]:
    """Return the samples of a group; they are the same in each process."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)  # the generator that PyTorch's samples use
    entry, dtype = databases()[group.database][group.entry], getattr(torch, group.dtype)
    generate = (_ERROR_SAMPLES if group.form == ERRORS else _VALID_SAMPLES)[group.database]
    with warnings.catch_warnings(action="ignore"):
        return list(generate(entry, dtype, CHANGES.get(group.form)))


def to_float64(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor in float64 or complex128; integers and Booleans are unchanged."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor
    precise = tensor.detach().to(torch.complex128 if tensor.is_complex() else torch.float64)
    return precise.requires_grad_(tensor.requires_grad)


def _result_with_gradients(result: Any, leaves: Sequence[torch.Tensor]) -> Any:
    """Compute the gradients of a call.

    Args:
        result: the result of the call.
        leaves: the tensors whose gradients are computed.

    Returns:
        The result and the gradients, for a random gradient of the result that is the same on each device.
    """
    differentiable = [tensor for tensor in tensors_of(result) if tensor.requires_grad]
    if differentiable and leaves:
        generator = torch.Generator().manual_seed(1)
        gradients = [_gradient_like(tensor, generator) for tensor in differentiable]
        torch.autograd.backward(differentiable, gradients)
    return result, [leaf.grad for leaf in leaves]


def _gradient_like(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a random gradient of multiples of 1/4 from -1 to 1, which each inexact element type represents exactly."""
    if tensor.layout is not torch.strided:
        return torch.ones_like(tensor)
    numbers = torch.randint(-4, 5, tensor.shape, generator=generator) / 4
    return numbers.to(tensor.dtype).to(tensor.device)


def _operator_samples(operator: Any, dtype: torch.dtype, change: TensorChange | None) -> Iterator[SampleCall]:
    """Yield the valid samples of an operator."""
    gradients = operator.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    for arguments in operator.sample_inputs("cpu", dtype, requires_grad=gradients):
        yield _operator_sample(operator, arguments, change)


def _operator_sample(operator: Any, arguments: Any, change: TensorChange | None, error: str = "") -> SampleCall:
    """Return the call of an operator with the arguments of a sample.

    Args:
        operator: The entry of the operator in PyTorch's database.
        arguments: The sample of the database.
        change: The change of each tensor; None for no change.
        error: The expected part of the error message; empty if the sample is valid.
    """
    values = arguments.input, arguments.args, arguments.kwargs
    precise = map_tensors(to_float64, values)

    def call(values: Any, device: str, seed: int) -> Any:
        copies = TensorCopies(device, change)
        args, kwargs = _place_arguments(operator.name, values, copies, device)
        torch.manual_seed(seed)
        result = arguments.output_process_fn_grad(operator(*args, **kwargs))
        return _result_with_gradients(result, copies.leaves)

    return SampleCall(
        call=lambda device, seed: call(values, device, seed),
        exact_call=lambda device, seed: call(precise, device, seed),
        error=error,
    )


def _place_arguments(
    name: str, values: Any, copies: TensorCopies, device: str
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return the positional and named arguments of an operator's call on a device."""
    first, args, kwargs = values
    first = map_tensors(copies.copy, first)
    if name not in ARGUMENTS_ON_CPU:
        args, kwargs = map_tensors(copies.copy, args), map_tensors(copies.copy, kwargs)
    args = [torch.device(device) if isinstance(value, torch.device) else value for value in args]
    return [first, *args], {**kwargs, "device": device} if "device" in kwargs else kwargs


def _operator_errors(operator: Any, dtype: torch.dtype, change: TensorChange | None) -> Iterator[SampleCall]:
    """Yield the samples of an operator that raise exceptions."""
    if operator.error_inputs_func is not None:
        for invalid in operator.error_inputs("cpu"):
            yield _operator_sample(operator, invalid.sample_input, change, invalid.error_regex)


def _module_samples(module: Any, dtype: torch.dtype, change: TensorChange | None) -> Iterator[SampleCall]:
    """Yield the valid samples of a module, in training and in evaluation."""
    for training in (True, False) if module.train_and_eval_differ else (True,):
        inputs = module.module_inputs_func(module, device="cpu", dtype=dtype, requires_grad=True, training=training)
        for arguments in inputs:
            if arguments.forward_input is not None:
                yield _module_sample(module, arguments, dtype, training, change)


def _module_sample(
    module: Any, arguments: Any, dtype: torch.dtype, training: bool, change: TensorChange | None, error: str = ""
) -> SampleCall:
    """Return the call that constructs a module and runs it.

    Args:
        module: The entry of the module in PyTorch's database.
        arguments: The arguments of the constructor and of the module. Without the latter, only the constructor runs.
        dtype: The element type.
        training: Whether the module is in training mode.
        change: The change of each tensor; None for no change.
        error: The expected part of the error message; empty if the sample is valid.
    """

    def call(precision: TensorChange, device: str, seed: int) -> Any:
        copies = TensorCopies(device, change)
        torch.manual_seed(0)
        constructor, forward = arguments.constructor_input, arguments.forward_input
        instance = module.module_cls(*constructor.args, **constructor.kwargs).to(dtype).train(training)
        instance = instance._apply(precision).to(device)
        if forward is None:
            return None
        args, kwargs = map_tensors(copies.copy, map_tensors(precision, (forward.args, forward.kwargs)))
        torch.manual_seed(seed)
        result, gradients = _result_with_gradients(instance(*args, **kwargs), [*copies.leaves, *instance.parameters()])
        return result, gradients, list(instance.buffers())

    return SampleCall(
        call=lambda device, seed: call(lambda tensor: tensor, device, seed),
        exact_call=lambda device, seed: call(to_float64, device, seed),
        error=error,
    )


def _module_errors(module: Any, dtype: torch.dtype, change: TensorChange | None) -> Iterator[SampleCall]:
    """Yield the samples of a module that raise exceptions."""
    if module.module_error_inputs_func is None:
        return
    for training in (True, False) if module.train_and_eval_differ else (True,):
        for invalid in module.module_error_inputs_func(
            module, device="cpu", dtype=dtype, requires_grad=False, training=training
        ):
            yield _module_sample(module, invalid.module_error_input, dtype, training, change, invalid.error_regex)


def _optimizer_samples(optimizer: Any, dtype: torch.dtype, change: TensorChange | None) -> Iterator[SampleCall]:
    """Yield a sample for each set of options of an optimizer and each implementation that the CPU has."""
    available = {"foreach", "fused"} & {*optimizer.supported_impls}
    if "cpu" not in optimizer.supports_fused_on:
        available -= {"fused"}
    for arguments in optimizer.optim_inputs_func("cpu"):
        for choice in ({}, *({name: True} for name in sorted(available))):
            yield _optimizer_sample(optimizer, {**arguments.kwargs, **choice}, dtype)


def _optimizer_sample(optimizer: Any, options: Mapping[str, Any], dtype: torch.dtype) -> SampleCall:
    """Return the sample that performs `STEPS` steps of an optimizer with these options."""

    def call(dtype: torch.dtype, device: str, seed: int) -> Any:
        generator = torch.Generator().manual_seed(0)
        numbers = [torch.randint(-8, 9, shape, generator=generator) / 8 for shape in ((3, 2), (2, 4)) * 2]
        weights = [tensor.to(dtype).to(device).requires_grad_() for tensor in numbers[:2]]
        targets = [tensor.to(dtype).to(device) for tensor in numbers[2:]]
        instance = optimizer.optim_cls(weights, **map_tensors(TensorCopies(device).copy, dict(options)))

        def closure() -> torch.Tensor:
            instance.zero_grad()
            loss = sum(((weight - target).abs() ** 2).sum() for weight, target in zip(weights, targets, strict=True))
            assert isinstance(loss, torch.Tensor)
            loss.backward()
            if optimizer.only_supports_sparse_grads:
                for weight in weights:
                    weight.grad = None if weight.grad is None else weight.grad.to_sparse()
            return loss

        losses = [instance.step(closure) for _ in range(STEPS)]
        return losses, weights, [list(tensors_of(state)) for state in instance.state.values()]

    precise = torch.complex128 if dtype.is_complex else torch.float64
    return SampleCall(
        call=lambda device, seed: call(dtype, device, seed),
        exact_call=lambda device, seed: call(precise, device, seed),
    )


def _optimizer_errors(optimizer: Any, dtype: torch.dtype, change: TensorChange | None) -> Iterator[SampleCall]:
    """Yield a sample for each set of options of an optimizer that raises an exception."""
    if optimizer.optim_error_inputs_func is None:
        return
    for invalid in optimizer.optim_error_inputs_func("cpu", dtype):
        yield SampleCall(
            call=partial(_call_optimizer, optimizer, invalid.optimizer_error_input), error=invalid.error_regex
        )


def _call_optimizer(optimizer: Any, arguments: Any, device: str, seed: int) -> Any:
    """Return the parameters after an optimizer was constructed and made a step; each has one copy on the device.

    Args:
        optimizer: the class of the optimizer.
        arguments: the parameters and the keyword arguments of the optimizer.
        device: the device.
        seed: the seed of the gradients.
    """
    copies: dict[int, torch.Tensor] = {}

    def copy(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in copies:
            copied = tensor.detach().clone().to(device)
            copies[id(tensor)] = torch.nn.Parameter(copied) if tensor.requires_grad else copied
        return copies[id(tensor)]

    params = [torch.nn.Parameter(torch.ones(2, 3))] if arguments.params is None else arguments.params
    instance = optimizer.optim_cls(map_tensors(copy, params), **map_tensors(copy, arguments.kwargs))
    return instance.step()


_VALID_SAMPLES = {"op": _operator_samples, "module": _module_samples, "optim": _optimizer_samples}
"""The functions that yield the valid samples of an entry, by database."""

_ERROR_SAMPLES = {"op": _operator_errors, "module": _module_errors, "optim": _optimizer_errors}
"""The functions that yield the invalid samples of an entry, by database."""
