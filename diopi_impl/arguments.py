"""Checks that the arguments of a call match the prototype; they run before an implementation in Python."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from operator import attrgetter
from threading import Lock
from types import NoneType
from typing import Any, final

from diopi_impl.base import Box
from diopi_impl.errors import UnsupportedDtypeError
from diopi_proto import parameters as kinds
from diopi_proto.ignored import Read
from diopi_proto.parameters import Parameter, Role
from diopi_proto.prototype import Prototype
from diopi_proto.types import Device, Dtype, Scalar
from lib_rt import Generator, Tensor

Check = Callable[[Any], None]
"""Raises if the value of a parameter contradicts the prototype."""

Perform = Callable[[Any, Sequence[Any]], Any]
"""Runs a call in a context; its values must have the form for which the function was prepared."""

Prepare = Callable[[Sequence[Any]], Perform]
"""Returns the function that runs a call with these values, and every other call of the same form.

Calls have the same form if they differ only in the numbers in their tensors. The returned function has no reference
to the tensors.
"""


def add_argument_checks(prototype: Prototype, prepare: Prepare) -> Callable[..., Any]:
    """Return the function that checks a call's arguments against `prototype` and then runs the call.

    The function raises ValueError or UnsupportedDtypeError unless

    - every required argument is present,
    - inputs have supported element types, and results have element types that can represent the values,
    - arguments that the prototype requires in host memory are in host memory,
    - arrays of tensors have as many entries as their count says,
    - tensors have the shapes that the prototype declares, if it declares any.

    An argument that the call does not read may have any value; the prepared function receives None in its place.

    Calls often repeat a form. Each form is checked and prepared once; the forms that were prepared last are cached.

    Args:
        prototype: the standard function.
        prepare: returns the function that runs the calls of a form.

    Returns:
        A function of the context and the values of the remaining parameters.
    """
    check, prepared = _argument_checks(prototype), _PreparedCalls()

    def call(context: Any, *values: Any) -> Any:
        """Run the prepared function for the form of the call; check and prepare the form first if it is new."""
        try:
            form = tuple([_FORMS.get(type(value), _form_of_other_types)(value) for value in values])
            perform = prepared.get(form)
        except TypeError:  # unhashable values, which no prototype accepts: the checks raise
            return _prepare_without_unread(prepare, check(values), values)(context, values)
        if perform is None:
            perform = prepared.store(form, _prepare_without_unread(prepare, check(values), values))
        return perform(context, values)

    return call


def _prepare_without_unread(prepare: Prepare, unread: frozenset[int], first_values: Sequence[Any]) -> Perform:
    """Return the function that runs calls of this form, with None for the arguments at the positions `unread`.

    Args:
        prepare: returns the function for the values of the first call of a form.
        unread: the positions of the arguments that the call does not read.
        first_values: the values of the first call.
    """
    if not unread:
        return prepare(first_values)

    def drop_unread(values: Sequence[Any]) -> list[Any]:
        """Return the values with None at the positions that the call does not read."""
        return [None if i in unread else value for i, value in enumerate(values)]

    perform = prepare(drop_unread(first_values))
    return lambda context, values: perform(context, drop_unread(values))


@final
class _PreparedCalls:
    """The prepared functions, by the form of the call. Threads may share an instance.

    If there are more than LIMIT, the function that was prepared first is dropped.
    """

    LIMIT = 256
    """The maximum number of prepared functions."""

    def __init__(self) -> None:
        self._performs: dict[Hashable, Perform] = {}
        self._lock = Lock()
        self.get = self._performs.get

    def store(self, form: Hashable, perform: Perform) -> Perform:
        """Cache and return `perform`, which runs the calls of this form from now on."""
        with self._lock:
            self._performs[form] = perform
            if len(self._performs) > self.LIMIT:
                del self._performs[next(iter(self._performs))]
        return perform


def _form(value: Any) -> Hashable:
    """Return a hashable description of an argument; calls whose arguments have equal forms share a preparation."""
    return _FORMS.get(type(value), _form_of_other_types)(value)


def _form_of_other_types(value: Any) -> Hashable:
    """Return the form of a generator, or the type and value of an argument that `_FORMS` does not list."""
    if isinstance(value, Generator):
        return Generator
    return type(value), repr(value) if isinstance(value, float) else value


_FORMS: dict[type, Callable[[Any], Hashable]] = {
    Tensor: attrgetter("layout.form"),
    Scalar: lambda scalar: (scalar.dtype, type(scalar.value), repr(scalar.value)),  # 0.0 is not -0.0
    **dict.fromkeys((int, bool, tuple, str, NoneType), lambda value: (type(value), value)),
    list: lambda entries: tuple([_form(entry) for entry in entries]),
    Box: lambda box: (Box, _form(box.value)),
}
"""The functions that return the form of an argument, by its type."""


def _argument_checks(prototype: Prototype) -> Callable[[Sequence[Any]], frozenset[int]]:
    """Return a function that raises unless the arguments match `prototype`, and returns the positions not read."""
    parameters = prototype.parameters[1:]
    checks = [_parameter_check(prototype, parameter) for parameter in parameters]
    count = next((i for i, p in enumerate(parameters) if p.role is Role.count), None)
    arrays = [i for i, p in enumerate(parameters) if p.is_tensor_array and p.annotation is not kinds.NewOuts]
    results = [i for i, p in enumerate(parameters) if p.annotation in (kinds.Out, kinds.Outs)]
    names = [parameter.name for parameter in parameters]
    may_ignore = any(fact.read is Read.nothing for fact in prototype.ignored)

    def check_all(all_values: Sequence[Any]) -> frozenset[int]:
        """Check all arguments; return the positions of arguments that the call does not read."""
        unread = _unread_positions(prototype, all_values) if may_ignore else frozenset()
        values = [None if i in unread else value for i, value in enumerate(all_values)]
        for i, (check, value) in enumerate(zip(checks, values, strict=True)):
            if i not in unread:
                check(value)
        arguments = dict(zip(names, values, strict=True))
        if prototype.shapes:
            _check_shapes(prototype, arguments)
        if count is not None:
            for i in arrays:
                _check_count(parameters[i], values[i], all_values[count])
        for i in results:
            _check_result(prototype, parameters[i], values[i], arguments)
        return unread

    return check_all


def _unread_positions(prototype: Prototype, values: Sequence[Any]) -> frozenset[int]:
    """Return the positions of the arguments that a call with these values does not read."""
    unboxed = [value.value if isinstance(value, Box) else value for value in values]
    arguments = {p.name: value for p, value in zip(prototype.parameters[1:], unboxed, strict=True)}
    names = prototype.unread_arguments(arguments)
    return frozenset(i for i, name in enumerate(arguments) if name in names)


def _parameter_check(prototype: Prototype, parameter: Parameter) -> Check:
    """Return the check of a parameter; the count of an array has none."""
    if parameter.role is Role.count:
        return lambda value: None
    if not (parameter.is_tensor or parameter.is_tensor_array):
        return _presence_check(parameter)
    accepted = frozenset(prototype.dtypes_of(parameter.name)) if parameter.is_argument else None
    check_tensor = _tensor_check(prototype, parameter, accepted)
    is_single = parameter.is_tensor or parameter.annotation is kinds.SparseIn
    return check_tensor if is_single else _entries_check(parameter, check_tensor)


def _presence_check(parameter: Parameter) -> Check:
    """Return a check that a required argument is not NULL."""

    def check(value: Any) -> None:
        """Raise ValueError if a required argument is None."""
        if value is None and not parameter.optional:
            raise ValueError(f"{parameter.c_name} is required, NULL was given")

    return check


def _tensor_check(prototype: Prototype, parameter: Parameter, accepted: frozenset[Dtype] | None) -> Check:
    """Return a check of the presence, element type and memory of a tensor.

    Args:
        prototype: the prototype of the function.
        parameter: the parameter of the tensor.
        accepted: the element types that the function accepts; None if another check follows from the result's rule.
    """
    check_presence, on_host = _presence_check(parameter), parameter.device is Device.host

    def check(value: Any) -> None:
        """Raise ValueError or UnsupportedDtypeError unless the tensor matches the parameter."""
        if value is None:
            check_presence(value)
        elif accepted is not None and value.dtype not in accepted:
            names = ", ".join(dtype.name for dtype in prototype.dtypes_of(parameter.name))
            raise UnsupportedDtypeError(f"{parameter.c_name} is {value.dtype.name}, expected one of {names}")
        elif on_host and value.memory_kind is not Device.host:
            raise ValueError(f"{parameter.c_name} is in device memory, expected it in host memory")

    return check


def _entries_check(parameter: Parameter, check_entry: Check) -> Check:
    """Return a check of each entry of an array of tensors."""
    check_presence, may_be_null = _presence_check(parameter), parameter.annotation is kinds.OptionalIns

    def check(entries: Any) -> None:
        """Raise ValueError or UnsupportedDtypeError unless every entry matches the parameter."""
        check_presence(entries)
        for number, entry in enumerate(entries or ()):
            if entry is not None:
                check_entry(entry)
            elif not may_be_null:
                raise ValueError(f"{parameter.c_name}[{number}] is required, NULL was given")

    return check


def _check_shapes(prototype: Prototype, arguments: Mapping[str, Any]) -> None:
    """Raise ValueError unless the tensors have the declared sizes; a named size is the same in all tensors.

    Args:
        prototype: the prototype, which declares the sizes.
        arguments: the arguments by name; None for an omitted tensor.

    Raises:
        ValueError: if a tensor has another shape; the message names both tensors if their sizes differ.
    """
    named_sizes: dict[str, tuple[int, str]] = {}
    for name, sizes in prototype.shapes.items():
        if arguments[name] is None:
            continue
        shape, text = arguments[name].shape, f"[{', '.join(map(str, sizes))}]"
        if len(shape) != len(sizes):
            raise ValueError(f"{name} has shape {shape}, expected {text}")
        for size, length in zip(sizes, shape, strict=True):
            if isinstance(size, str) and size not in named_sizes:
                named_sizes[size] = (
                    (arguments[size], "") if size in arguments else (length, f", which {name} has as {length}")
                )
            expected, source = (size, "") if isinstance(size, int) else named_sizes[size]
            if length != expected:
                size_text = f"{size} = {expected}" if isinstance(size, str) else str(size)
                raise ValueError(f"{name} has shape {shape}, expected {text} with {size_text}{source}")


def _check_count(parameter: Parameter, entries: Sequence[Any] | None, count: int) -> None:
    """Raise ValueError unless an array has `count` entries."""
    if entries is not None and len(entries) != count:
        raise ValueError(f"{parameter.c_name} has {len(entries)} entries, the count is {count}")


def _check_result(prototype: Prototype, parameter: Parameter, result: Any, arguments: Mapping[str, Any]) -> None:
    """Raise ValueError if the element type of `result`, the argument for `parameter`, can't represent the values."""
    entries = enumerate(result or ()) if parameter.is_tensor_array else [(None, result)] if result else ()
    for entry, tensor in entries:
        if not prototype.can_hold(parameter.name, tensor.dtype, arguments, entry):
            expected = _describe_expected_dtype(prototype, parameter, arguments, entry)
            raise ValueError(f"{parameter.c_name} is {tensor.dtype.name}, {expected}")


def _describe_expected_dtype(
    prototype: Prototype, parameter: Parameter, arguments: Mapping[str, Any], entry: int | None
) -> str:
    """Return the part of an error message that says which element type a result must have.

    Args:
        prototype: The function.
        parameter: The parameter of the result.
        arguments: All arguments of the call by name, from which the element type follows.
        entry: The position of the tensor in an array of results; None for a single tensor.
    """
    if prototype.selectable_dtypes:
        return f"expected one of {', '.join(dtype.name for dtype in prototype.selectable_dtypes)}"
    inferred = prototype.infer(parameter.name, arguments, entry)
    return f"the result is {inferred.name if inferred is not None else 'another'}"
