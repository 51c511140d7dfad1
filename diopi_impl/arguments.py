"""What is checked before an implementation in Python runs: that a call's arguments are what the prototype says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from diopi_impl.errors import UnsupportedDtypeError
from diopi_proto import parameters as kinds
from diopi_proto.dtypes import category, chosen
from diopi_proto.parameters import Parameter, Role
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype, Number, Scalar
from lib_rt import Tensor

_CATEGORY = {dtype: category(dtype) for dtype in Dtype}

Check = Callable[[Any], None]
"""Raises when the value of one parameter can't be what the prototype says."""


def checked(prototype: Prototype, implementation: Callable[..., Any]) -> Callable[..., Any]:
    """`implementation`, reached only by calls whose arguments are what `prototype` says.

    Checked are: that nothing required is missing; the element types of inputs, and that those of results can hold
    them; that arrays of tensors have as many entries as their count says. Else ValueError or UnsupportedDtypeError.
    """
    parameters = prototype.parameters[1:]
    checks = [_check(prototype, parameter) for parameter in parameters]
    count = next((i for i, p in enumerate(parameters) if p.role is Role.count), None)
    arrays = [i for i, p in enumerate(parameters) if p.is_tensor_array and p.annotation is not kinds.NewOuts]
    results = [i for i, p in enumerate(parameters) if p.annotation in (kinds.Out, kinds.Outs)]
    can_hold = _ResultTypes(prototype) if results else None

    def call(context: Any, *values: Any) -> Any:
        for check, value in zip(checks, values, strict=True):
            check(value)
        if count is not None:
            for i in arrays:
                _check_count(parameters[i], values[i], values[count])
        if can_hold is not None:
            for i in results:
                can_hold.check(parameters[i], values[i], values)
        return implementation(context, *values)

    return call


def _check(prototype: Prototype, parameter: Parameter) -> Check:
    if parameter.role is Role.count:
        return lambda value: None
    if not (parameter.is_tensor or parameter.is_tensor_array):
        return _required(parameter)
    accepted = frozenset(prototype.dtypes_of(parameter.name)) if parameter.is_argument else None
    one = _tensor_check(prototype, parameter, accepted)
    return _entries_check(parameter, one) if parameter.is_tensor_array else one


def _required(parameter: Parameter) -> Check:
    def check(value: Any) -> None:
        if value is None and not parameter.optional:
            raise ValueError(f"{parameter.c_name} is required, NULL was given")

    return check


def _tensor_check(prototype: Prototype, parameter: Parameter, accepted: frozenset[Dtype] | None) -> Check:
    required = _required(parameter)

    def check(value: Any) -> None:
        if value is None:
            required(value)
        elif accepted is not None and value.dtype not in accepted:
            names = ", ".join(dtype.name for dtype in prototype.dtypes_of(parameter.name))
            raise UnsupportedDtypeError(f"{parameter.c_name} is {value.dtype.name}, expected one of {names}")

    return check


def _entries_check(parameter: Parameter, check_entry: Check) -> Check:
    required, may_lack = _required(parameter), parameter.annotation is kinds.OptionalIns

    def check(entries: Any) -> None:
        required(entries)
        for number, entry in enumerate(entries or ()):
            if entry is not None:
                check_entry(entry)
            elif not may_lack:
                raise ValueError(f"{parameter.c_name}[{number}] is required, NULL was given")

    return check


def _check_count(parameter: Parameter, entries: Sequence[Any] | None, count: int) -> None:
    if entries is not None and len(entries) != count:
        raise ValueError(f"{parameter.c_name} has {len(entries)} entries, the count is {count}")


class _ResultTypes:
    """Which element types the results of a function may have: none of a lower category than what is to go there.

    Numbers may be widened and rounded, but a floating result is not put into an integer tensor, nor a complex one into
    a real tensor, as in PyTorch (torch.can_cast).
    """

    def __init__(self, prototype: Prototype) -> None:
        arguments = list(enumerate(prototype.parameters[1:]))
        self._tensors = [i for i, p in arguments if p.is_tensor and p.is_argument]
        self._arrays = [i for i, p in arguments if p.is_tensor_array and p.is_argument]
        self._scalars = [i for i, p in arguments if issubclass(p.annotation, kinds.Scalar)]
        self._prototype = prototype
        self._expected = lru_cache(maxsize=256)(self._expect)

    def check(self, parameter: Parameter, result: Tensor | Sequence[Tensor] | None, values: Sequence[Any]) -> None:
        """ValueError if `result`, what the call passes for `parameter`, can't hold what the standard puts there."""
        scalars = tuple(type(_number(values[i]))() for i in self._scalars if values[i] is not None)
        numbered: Iterable[tuple[int | None, Tensor]]
        numbered = [(None, result)] if isinstance(result, Tensor) else enumerate(result or ())
        for number, tensor in numbered:
            expected = self._expected(parameter.name, tuple(self._inputs(values, number)), scalars)
            if expected is not None and _CATEGORY[tensor.dtype] < _CATEGORY[expected]:
                raise ValueError(f"{parameter.c_name} is {tensor.dtype.name}, the result is {expected.name}")

    def _inputs(self, values: Sequence[Any], number: int | None) -> list[Dtype]:
        """The element types a result follows from: that of the entry of its own number, in an array of results."""
        arrays = [values[i] for i in self._arrays if values[i] is not None]
        if number is not None and arrays:
            return [arrays[0][number].dtype]
        alone = [values[i].dtype for i in self._tensors if values[i] is not None]
        return alone or [entry.dtype for entries in arrays for entry in entries if entry is not None]

    def _expect(self, result: str, inputs: Sequence[Dtype], scalars: Sequence[Number]) -> Dtype | None:
        """The element type the standard gives a result; None where the caller chooses."""
        if not inputs or self._prototype.result is chosen:
            return None
        return self._prototype.result_dtype(result, inputs, scalars)


def _number(value: Any) -> Number:
    number: Number = value.value if isinstance(value, Scalar) else value
    return number
