"""`AtenVendor`: a vendor that implements each standard function by an equivalent ATen operator of PyTorch.

It does not convert results: if PyTorch's result has another element type than the caller's tensor, the call fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from diopi_impl.aten_cpu.binding import NoEquivalentError, TorchCall, bind, function_call
from diopi_impl.aten_cpu.equivalents import Equivalent, equivalents
from diopi_impl.aten_cpu.limits import LIMITS
from diopi_impl.base import BaseVendor, Box
from diopi_impl.host_runtime import HostRuntime
from diopi_impl.torch_cpu import vendor as torch_cpu
from diopi_proto.interface import lookup, prototypes
from diopi_proto.parameters import InOut, NewOuts
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Error
from lib_rt import Context, Device
from lib_rt.dtypes import to_numpy

NO_KERNEL = "not implemented for"
"""Part of PyTorch's message if an operator does not support an element type."""

NO_OPERATOR = "with arguments from the 'CPU' backend"
"""Part of PyTorch's message for an operator that is not implemented for the CPU."""


class RejectedError(Exception):
    """PyTorch rejects the call, or its results do not fit the caller's tensors."""


class AtenVendor(BaseVendor):
    """The operators of ATen on the CPU, called with the caller's own tensors."""

    def __init__(self) -> None:
        super().__init__("aten_cpu", torch.__version__, waivers=(*torch_cpu.waivers, *LIMITS))
        self._last_error = ""

    def has(self, name: str) -> bool:
        """Return whether the vendor implements the standard function `name`."""
        return name in prototypes() and lookup(name).base in equivalents()

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        """Call the standard function `name` and return its error code; see `BaseVendor.call`."""
        context.synchronize()
        try:
            _call(context, lookup(name), arguments)
        except NoEquivalentError as error:
            self._last_error = f"{name}: {error}"
            return Error.NoImplement
        except Exception as error:
            self._last_error = f"{name}: {type(error).__name__}: {error}"
            if NO_OPERATOR in str(error):
                return Error.NoImplement
            return Error.DtypeNotSupported if NO_KERNEL in str(error) else Error.ErrorOccurred
        return Error.Success

    def last_error(self) -> str:
        """Return the message of the latest failed call of any thread."""
        return self._last_error

    def open_device(self) -> Device:
        """Open and return a device, and limit PyTorch to one thread."""
        torch.set_num_threads(1)
        return Device(HostRuntime().functions(), host_addressable=True)


def _call(context: Context, prototype: Prototype, values: Sequence[Any]) -> None:
    """Make the call with the first equivalent operator that accepts it and whose results fit.

    Otherwise raise the first rejection or, if there is none, the first NoEquivalentError.
    """
    rejections: list[Exception] = []
    mismatches: list[Exception] = []
    call = function_call(prototype, values)
    for equivalent in equivalents()[prototype.base]:
        try:
            returned = _call_operator(call, equivalent)
            _deliver(context, call, equivalent, values, returned)
            return
        except NoEquivalentError as error:
            mismatches.append(error)
        except Exception as error:
            rejections.append(error)
    raise [*rejections, *mismatches][0]


def _call_operator(call: TorchCall, equivalent: Equivalent) -> Sequence[Any]:
    """Call the operator, or compute its gradients, and return the results in order.

    If the results have other types than the caller's tensors, call the `out` variant instead, if there is one.

    Returns:
        The results.
    """
    operator = _operator(call, equivalent)
    bound = bind(call, equivalent, operator)
    call.check_mask()
    call.seed()
    _check_written(call, operator, bound)
    if equivalent.is_gradient:
        return _gradients(call, operator, bound)
    returned = _as_results(call, _invoke(operator, bound))
    out_variant = equivalent.out_variant(operator)
    if out_variant is None or _has_dtypes(call, equivalent, returned):
        return returned
    return _as_results(call, _invoke(out_variant, {**bound, **_out_arguments(call, equivalent, out_variant)}))


def _has_dtypes(call: TorchCall, equivalent: Equivalent, returned: Sequence[Any]) -> bool:
    """Return whether the results that an operator has returned have the element types of the caller's tensors.

    Args:
        call: The call.
        equivalent: The operator that computes the function.
        returned: The results of the operator.
    """
    for number, (parameter, target) in enumerate(zip(call.prototype.results, call.results, strict=True)):
        place = equivalent.row.results.get(parameter.name, number)
        if isinstance(target, torch.Tensor) and place < len(returned) and target.dtype != returned[place].dtype:
            return False
    return True


def _out_arguments(call: TorchCall, equivalent: Equivalent, out_variant: Any) -> dict[str, Any]:
    """Return the keyword arguments of an operator's `out` variant: the caller's result tensors.

    Raises:
        RejectedError: The caller omitted a result that the variant writes.
    """
    written = [a for a in out_variant._schema.arguments if a.kwarg_only and a.alias_info is not None]
    results = {
        equivalent.row.results.get(p.name, number): target
        for number, (p, target) in enumerate(zip(call.prototype.results, call.results, strict=True))
    }
    if any(results.get(number) is None for number in range(len(written))):
        raise RejectedError(
            "the results have other element types than the caller's tensors, and the caller omitted some results"
        )
    return {argument.name: results[number] for number, argument in enumerate(written)}


def _operator(call: TorchCall, equivalent: Equivalent) -> Any:
    """Return the operator for the called form: the in-place variant for in-place forms, if there is one."""
    inplace_operator = equivalent.operator(inplace=True) if call.prototype.is_inplace else None
    return inplace_operator or equivalent.operator(inplace=False)


def _check_written(call: TorchCall, operator: Any, bound: dict[str, Any]) -> None:
    """Check that the operator writes only to results of the function.

    Args:
        call: The call of the function.
        operator: The operator.
        bound: The arguments of the operator by name.

    Raises:
        NoEquivalentError: The operator would write to a tensor that the function only reads.
    """
    results = {id(entry) for value in call.results for entry in (value if isinstance(value, list) else [value])}
    for argument in operator._schema.arguments:
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = bound.get(argument.name)
            written = value if isinstance(value, list) else [value]
            if any(id(entry) not in results for entry in written if entry is not None):
                raise NoEquivalentError(f"{operator} writes {argument.name}")


def _invoke(operator: Any, bound: dict[str, Any]) -> Any:
    """Call an operator with these arguments, by name, and its defaults for all others; return its results."""
    declared = operator._schema.arguments
    defaults = {a.name: a.default_value for a in declared if a.has_default_value()}
    values = {**defaults, **bound}
    positional = [values[a.name] for a in declared if not a.kwarg_only]
    keywords = {a.name: bound[a.name] for a in declared if a.kwarg_only and a.name in bound}
    return operator(*positional, **keywords)


def _as_results(call: TorchCall, returned: Any) -> Sequence[Any]:
    """Return the results as a sequence. A list of tensors is one result.

    If the operator returned nothing, it wrote in place: return the caller's results.
    """
    if returned is None or returned == ():
        return call.results
    if isinstance(returned, tuple):
        return returned
    return [returned]


def _gradients(call: TorchCall, operator: Any, bound: dict[str, Any]) -> Sequence[Any]:
    """Return the gradients that autograd computes: result grad_x is the gradient with respect to argument x.

    Args:
        call: the call of the gradient function.
        operator: the forward operator.
        bound: the arguments of the forward operator by name.

    Raises:
        RejectedError: `grad_output` has another shape than the result of the operator.
    """
    names = [p.name.removeprefix("grad_") for p in call.prototype.results]
    sources = {"self": "self" if "self" in bound else "input", "input": "input" if "input" in bound else "self"}
    names = [sources.get(name, name) for name in names]
    targets = dict(zip(names, call.results, strict=True))
    inputs = {name: bound.get(name, torch.zeros_like(result)) for name, result in targets.items() if result is not None}
    leaves = {name: tensor.detach().requires_grad_() for name, tensor in inputs.items()}
    outer = next(call.values[name] for name in ("grad_output", "grad_out") if name in call.values)
    result = _invoke(operator, {**bound, **leaves})
    if result.shape != outer.shape:
        raise RejectedError(f"grad_output has shape {tuple(outer.shape)}, the result has {tuple(result.shape)}")
    gradients = torch.autograd.grad(result, list(leaves.values()), outer, materialize_grads=True)
    gradient_by_name = dict(zip(leaves, gradients, strict=True))
    return [gradient_by_name.get(name) for name in names]


def _deliver(
    context: Context, call: TorchCall, equivalent: Equivalent, values: Sequence[Any], returned: Sequence[Any]
) -> None:
    """Write the results to the caller's tensors and boxes.

    Args:
        context: the context of the call, which owns new tensors.
        call: the call.
        equivalent: the operator, which says at which positions it returns the results.
        values: the arguments after the context, as the caller passes them.
        returned: the results of the operator, in order.

    Raises:
        NoEquivalentError: The operator does not compute a result that the caller wants.
        RejectedError: A result does not fit the caller's tensor.
    """
    boxes = dict(zip((p.name for p in call.prototype.parameters[1:]), values, strict=True))
    pairs = []
    for number, parameter in enumerate(call.prototype.results):
        place = equivalent.row.results.get(parameter.name, number)
        if boxes[parameter.name] is None:
            continue
        if place >= len(returned) and parameter.annotation is InOut:
            continue  # the operator has written it in place
        if place >= len(returned):
            raise NoEquivalentError(f"the operator has no result for {parameter.name}")
        if parameter.annotation is NewOuts:
            _fill_boxes(context, boxes[parameter.name], returned[place:])
        elif isinstance(boxes[parameter.name], Box):
            _fill_box(context, boxes[parameter.name], returned[place])
        else:
            pairs.append((parameter.name, call.values[parameter.name], returned[place]))
    for name, target, value in pairs:
        _check_fits(name, target, value)
    for _, target, value in pairs:
        _copy(target, value)


def _check_fits(name: str, target: Any, value: Any) -> None:
    """Check that each result has the element type and, apart from axes of size 1, the shape of the caller's tensor.

    Omitted results fit.

    Raises:
        RejectedError: A result does not fit.
    """
    if isinstance(target, list):
        for entry, tensor in zip(target, value, strict=True):
            _check_fits(name, entry, tensor)
    elif (
        target is not None
        and not _is_omitted(target, value)
        and (target.dtype, _axes(target)) != (value.dtype, _axes(value))
    ):
        expected, actual = (f"{tensor.dtype}{list(tensor.shape)}" for tensor in (target, value))
        raise RejectedError(f"{name} is {expected}, the result of PyTorch is {actual}")


def _copy(target: Any, value: Any) -> None:
    """Copy a result, or each entry of a list, to the caller's tensor."""
    if isinstance(target, list):
        for entry, tensor in zip(target, value, strict=True):
            _copy(entry, tensor)
    elif target is not None and target is not value and not _is_omitted(target, value):
        target.copy_(value.detach().reshape(target.shape))


def _is_omitted(target: torch.Tensor, value: torch.Tensor | None) -> bool:
    """Return whether the operator did not compute a result.

    For example, batch normalization in evaluation mode returns empty statistics.
    """
    return value is None or (value.numel() == 0 and target.numel() > 0)


def _axes(tensor: torch.Tensor) -> list[int]:
    """Return the sizes other than 1. Some results of PyTorch have extra axes of size 1."""
    return [size for size in tensor.shape if size != 1]


def _fill_boxes(context: Context, boxes: Sequence[Box], values: Sequence[Any]) -> None:
    """Fill boxes with the results, in order."""
    for box, value in zip(boxes, values, strict=False):
        _fill_box(context, box, value)


def _fill_box(context: Context, box: Box, value: Any) -> None:
    """Fill a box with a number, or with a tensor of the context."""
    if not isinstance(value, torch.Tensor):
        box.value = value
        return
    dtype = Dtype[str(value.dtype).removeprefix("torch.")]
    box.value = context.require_tensor(tuple(value.shape), dtype)
    dense = value.contiguous()
    array = dense.view(torch.int16).numpy().view(to_numpy(dtype)) if dtype is Dtype.bfloat16 else dense.numpy()
    box.value.write(array)
