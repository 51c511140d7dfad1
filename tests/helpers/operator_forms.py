"""Call PyTorch's operators with tensors in unusual forms on the device of `diopi_torch`, and compare with the CPU.

A form is a property of the tensors that PyTorch's own samples of arguments lack: their memory layout, a lazy
conjugation, or memory that two arguments share. `FORMS` has all of them.

The functions that call an operator in a form return its result, or the memory that it has changed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

import torch

SAMPLES = 2
"""Number of samples of each operator and form."""

TOLERANCE = 1e-4
"""Relative and absolute tolerance for results; both devices compute in the same element type."""

ARGUMENTS_ON_CPU = ("tensor_split",)
"""Operators whose arguments, except for the first, are on the CPU on every device."""

ANY_VALUES = ("empty", "new_empty", "bernoulli", "multinomial", "normal", "rand")
"""Beginnings of the names of operators that draw random numbers or return uninitialized memory."""

CRASHING = {("_chunk_cat", "zero_dimensional")}
"""Operators and forms with which PyTorch's CPU ends the process."""

Call = Callable[[Any, Any, str], Any]
"""Calls an operator with a sample on a device."""


@dataclass(frozen=True)
class Form:
    """A form of the tensors that operators are called with.

    Attributes:
        call: calls an operator with a sample whose tensors have this form.
        dtypes: the element types of the samples.
        has_values: whether results are specified; if not, only exceptions are compared.
    """

    call: Call
    dtypes: Sequence[torch.dtype]
    has_values: bool = True


@cache
def all_operators() -> Sequence[Any]:
    """Return PyTorch's descriptions of its operators; the import takes seconds."""
    from torch.testing._internal import common_methods_invocations

    # Samples of operators that draw seed the generator, which would hide that they draw.
    common_methods_invocations.wrapper_set_seed = lambda operator, *args, **kwargs: operator(*args, **kwargs)
    return list(common_methods_invocations.op_db)


def full_name(operator: Any) -> str:
    """Return the name of an operator with its variant."""
    return ".".join(filter(None, (operator.name, operator.variant_test_name)))


def map_tensors(change: Callable[[Any], Any], value: Any) -> Any:
    """Return an argument of a sample with each tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: map_tensors(change, entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        entries = [map_tensors(change, entry) for entry in value]
        return type(value)(*entries) if hasattr(value, "_fields") else type(value)(entries)
    return value


def tensors_of(value: Any) -> Iterator[Any]:
    """Yield the tensors in a value."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple | dict):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from tensors_of(entry)


def with_changed_tensors(change: Callable[[Any], Any]) -> Call:
    """Return a call whose tensors are changed on the device; it returns the results and, if possible, gradients."""

    def call(operator: Any, sample: Any, device: str) -> Any:
        leaves: list[Any] = []

        def move(tensor: Any) -> Any:
            leaf = tensor.detach().clone().to(device)
            if tensor.requires_grad:
                leaves.append(leaf.requires_grad_())
            return change(leaf)

        args, kwargs = _move_arguments(operator, sample, device, move)
        result = operator(*args, **kwargs)
        differentiable = [tensor for tensor in tensors_of(result) if tensor.requires_grad]
        if differentiable and leaves:
            torch.autograd.backward(differentiable, [torch.ones_like(tensor) for tensor in differentiable])
        return result, [leaf.grad for leaf in leaves]

    return call


def _move_arguments(
    operator: Any, sample: Any, device: str, move: Callable[[Any], Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a sample for a device with each tensor moved."""
    first, args, kwargs = map_tensors(move, sample.input), sample.args, sample.kwargs
    if operator.name not in ARGUMENTS_ON_CPU:
        args, kwargs = map_tensors(move, args), map_tensors(move, kwargs)
    return [first, *args], {**kwargs, "device": device} if "device" in kwargs else dict(kwargs)


def _to_device(operator: Any, sample: Any, device: str) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a sample on a device."""
    return _move_arguments(operator, sample, device, lambda tensor: tensor.detach().clone().to(device))


def with_default_dtype(operator: Any, sample: Any, device: str) -> Any:
    """Call an operator twice, the second time after the default element type has been changed."""
    args, kwargs = _to_device(operator, sample, device)
    operator(*args, **kwargs)
    torch.set_default_dtype(torch.float64)
    try:
        return operator(*args, **kwargs)
    finally:
        torch.set_default_dtype(torch.float32)


def to_repeated_output(operator: Any, sample: Any, device: str) -> Any:
    """Call an operator with an output argument whose elements are all at one address."""
    args, kwargs = _to_device(operator, sample, device)
    result = map_tensors(lambda tensor: repeat_first(torch.zeros_like(tensor)), operator(*args, **kwargs))
    return operator(*args, **kwargs, out=tuple(result) if isinstance(result, tuple) else result)


def to_output_within_input(operator: Any, sample: Any, device: str) -> Any:
    """Call an operator with an output argument that begins at the second element of the first tensor.

    If the CPU allows this, the results depend on the order in which it reads and writes.
    """
    args, kwargs = _to_device(operator, sample, device)
    result = next(tensors_of(operator(*args, **kwargs)))
    memory = torch.zeros(1 + max(args[0].numel(), result.numel()), dtype=args[0].dtype, device=device)
    first = memory[: args[0].numel()].view(args[0].shape).copy_(args[0])
    out = memory[1 : 1 + result.numel()].view(result.shape)
    operator(first, *args[1:], **kwargs, out=out)
    return memory


def in_place_on_repeated(operator: Any, sample: Any, device: str) -> Any:
    """Call the in-place variant of an operator with a tensor whose elements are all at one address."""
    args, kwargs = _to_device(operator, sample, device)
    return operator.inplace_variant(repeat_first(args[0]), *args[1:], **kwargs)


def in_place_beside_operand(operator: Any, sample: Any, device: str) -> Any:
    """Call the in-place variant of an operator with an operand that overlaps the written tensor."""
    args, kwargs = _to_device(operator, sample, device)
    memory = torch.zeros(1 + args[0].numel(), dtype=args[0].dtype, device=device)
    written = memory[1:].view(args[0].shape).copy_(args[0])
    operand = memory[:-1].view(args[0].shape)
    operator.inplace_variant(written, operand, *args[2:], **kwargs)
    return memory


def negate_lazily(tensor: Any) -> Any:
    """Return a tensor with the same elements that PyTorch has yet to negate; integers are unchanged."""
    return torch._neg_view(-tensor) if tensor.is_floating_point() or tensor.is_complex() else tensor


def first_element(tensor: Any) -> Any:
    """Return the first element of a tensor as a tensor without axes."""
    return tensor.flatten()[0] if tensor.numel() else tensor


def repeat_first(tensor: Any) -> Any:
    """Return a tensor of the same shape that repeats the first element without copying it."""
    return tensor.flatten()[:1].view((1,) * tensor.dim()).expand(tensor.shape) if tensor.numel() else tensor


def transpose_memory(tensor: Any) -> Any:
    """Return a tensor with the same elements whose axes lie in memory in the opposite order."""
    axes = tuple(reversed(range(tensor.dim())))
    return tensor.permute(axes).contiguous().permute(axes)


_REAL = torch.float32, torch.int64
"""The element types of forms that do not depend on the type."""

FORMS: Mapping[str, Form] = {
    "conjugated": Form(with_changed_tensors(lambda tensor: tensor.conj_physical().conj()), (torch.complex64,)),
    "negated": Form(with_changed_tensors(negate_lazily), (torch.float32, torch.complex64)),
    "transposed": Form(with_changed_tensors(transpose_memory), _REAL),
    "expanded": Form(with_changed_tensors(repeat_first), _REAL),
    "zero_dimensional": Form(with_changed_tensors(first_element), _REAL),
    "default_dtype": Form(with_default_dtype, (torch.int64, torch.complex64)),
    "repeated_output": Form(to_repeated_output, (torch.float32,)),
    "output_within_input": Form(to_output_within_input, (torch.float32,), has_values=False),
    "in_place_on_repeated": Form(in_place_on_repeated, (torch.float32,)),
    "in_place_beside_operand": Form(in_place_beside_operand, (torch.float32,), has_values=False),
}
"""The forms by name."""


def has_variant(form: str, operator: Any) -> bool:
    """Return whether an operator can be called with tensors of a form."""
    if (operator.name, form) in CRASHING:
        return False
    if "output" in form:
        return bool(operator.supports_out)
    return not form.startswith("in_place") or operator.inplace_variant is not None


def find_differences(form: str, operator: Any) -> Iterator[str]:
    """Yield a description of each sample for which the device and the CPU differ."""
    for dtype in FORMS[form].dtypes:
        if not has_variant(form, operator) or not operator.supports_dtype(dtype, "cpu"):
            continue
        gradients = operator.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
        with warnings.catch_warnings(action="ignore"):
            samples = list(islice(operator.sample_inputs("cpu", dtype, requires_grad=gradients), SAMPLES))
        for number, sample in enumerate(samples):
            if difference := _compare(form, operator, sample):
                yield f"{full_name(operator)}[{form}, {dtype}, sample {number}]: {difference}"


def _compare(form: str, operator: Any, sample: Any) -> str | None:
    """Return how the results of a sample on the device and on the CPU differ; None if they agree."""
    expected, expected_with_other_seed = (
        _outcome(form, operator, sample, "cpu", 0),
        _outcome(form, operator, sample, "cpu", 1),
    )
    actual = _outcome(form, operator, sample, "diopi", 0)
    if isinstance(expected, Exception) or isinstance(actual, Exception):
        agrees = isinstance(actual, type(expected)) and isinstance(expected, type(actual))
        return None if agrees else f"the device: {_text(actual)}; the CPU: {_text(expected)}"
    if not FORMS[form].has_values:
        return None
    if operator.name.startswith(ANY_VALUES) or _difference(expected_with_other_seed, expected):
        return None if _descriptions(actual) == _descriptions(expected) else "shapes or element types differ"
    return _difference(actual, expected)


def _text(outcome: Any) -> str:
    """Return the type and message of an exception, or "a result"."""
    return f"{type(outcome).__name__}: {str(outcome)[:160]}" if isinstance(outcome, Exception) else "a result"


def _outcome(form: str, operator: Any, sample: Any, device: str, seed: int) -> Any:
    """Return what a call returns or raises; `seed` seeds PyTorch's generator, so that draws are visible as changes."""
    torch.manual_seed(seed)
    try:
        with warnings.catch_warnings(action="ignore"):
            return FORMS[form].call(operator, sample, device)
    except Exception as error:
        return error


def _descriptions(value: Any) -> list[Any]:
    """Return the shapes and element types of the tensors in a value."""
    return [(tensor.shape, tensor.dtype) for tensor in tensors_of(value)]


def _difference(actual: Any, expected: Any) -> str | None:
    """Return how two results differ; None if they are equal within the tolerance."""
    try:
        torch.testing.assert_close(
            map_tensors(lambda tensor: tensor.detach().cpu(), actual),
            map_tensors(lambda tensor: tensor.detach(), expected),
            rtol=TOLERANCE,
            atol=TOLERANCE,
            equal_nan=True,
        )
    except AssertionError as error:
        return str(error).splitlines()[0]
    return None
