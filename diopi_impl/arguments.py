"""What is checked before an implementation in Python runs: that a call's arguments are what the prototype says."""

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
"""Raises when the value of one parameter can't be what the prototype says."""

Perform = Callable[[Any, Sequence[Any]], Any]
"""Runs a call in a context with these values, which are of the form that it was prepared for."""

Prepare = Callable[[Sequence[Any]], Perform]
"""From the values of a call to what runs it, and all calls that differ from it in nothing but the numbers in tensors.

It keeps none of the tensors.
"""


def checked(prototype: Prototype, prepare: Prepare) -> Callable[..., Any]:
    """What `prepare` makes of the form of a call, reached only by calls whose arguments are what `prototype` says.

    Checked are: that nothing required is missing; the element types of inputs, and that those of results can hold
    them; what has to lie in host memory; that arrays of tensors have as many entries as their count says. Else
    ValueError or UnsupportedDtypeError.
    An argument of which nothing is read in the call may be anything; what is prepared gets None for it.
    Where the prototype says shapes, they are checked too.

    Calls are often of the same form: it is checked, and the call prepared, once for those made last.
    """
    check, prepared = _checks(prototype), _Prepared()

    def call(context: Any, *given: Any) -> Any:
        try:
            form = tuple([_FORMS.get(type(value), _form_of_others)(value) for value in given])
            perform = prepared.get(form)
        except TypeError:  # values that no prototype has: the checks say so
            return _performed(prepare, check(given), given)(context, given)
        if perform is None:
            perform = prepared.keep(form, _performed(prepare, check(given), given))
        return perform(context, given)

    return call


def _performed(prepare: Prepare, unread: frozenset[int], given: Sequence[Any]) -> Perform:
    """What runs calls of the form of this one, in which the arguments `unread` are not looked at."""
    if not unread:
        return prepare(given)

    def read(values: Sequence[Any]) -> list[Any]:
        return [None if i in unread else value for i, value in enumerate(values)]

    perform = prepare(read(given))
    return lambda context, values: perform(context, read(values))


@final
class _Prepared:
    """What was prepared for calls, by their form. The oldest are forgotten. Threads may share it."""

    LIMIT = 256

    def __init__(self) -> None:
        self._performs: dict[Hashable, Perform] = {}
        self._lock = Lock()
        self.get = self._performs.get

    def keep(self, form: Hashable, perform: Perform) -> Perform:
        """`perform`, which runs all calls of this form from now on."""
        with self._lock:
            self._performs[form] = perform
            if len(self._performs) > self.LIMIT:
                del self._performs[next(iter(self._performs))]
        return perform


def _form(value: Any) -> Hashable:
    """All that can be known of an argument before the call, so that equal ones are prepared for alike."""
    return _FORMS.get(type(value), _form_of_others)(value)


def _form_of_others(value: Any) -> Hashable:
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
"""By the type of an argument; what differs in nothing but the numbers in tensors has the same form."""


def _checks(prototype: Prototype) -> Callable[[Sequence[Any]], frozenset[int]]:
    """What raises unless the arguments are what `prototype` says, and tells by number of which nothing is read."""
    parameters = prototype.parameters[1:]
    checks = [_check(prototype, parameter) for parameter in parameters]
    count = next((i for i, p in enumerate(parameters) if p.role is Role.count), None)
    arrays = [i for i, p in enumerate(parameters) if p.is_tensor_array and p.annotation is not kinds.NewOuts]
    results = [i for i, p in enumerate(parameters) if p.annotation in (kinds.Out, kinds.Outs)]
    names = [parameter.name for parameter in parameters]
    may_ignore = any(fact.read is Read.nothing for fact in prototype.ignored)

    def check_all(given: Sequence[Any]) -> frozenset[int]:
        unread = _unread(prototype, given) if may_ignore else frozenset()
        values = [None if i in unread else value for i, value in enumerate(given)]
        for i, (check, value) in enumerate(zip(checks, values, strict=True)):
            if i not in unread:
                check(value)
        arguments = dict(zip(names, values, strict=True))
        if prototype.shapes:
            _check_shapes(prototype, arguments)
        if count is not None:
            for i in arrays:
                _check_count(parameters[i], values[i], given[count])
        for i in results:
            _check_result(prototype, parameters[i], values[i], arguments)
        return unread

    return check_all


def _unread(prototype: Prototype, values: Sequence[Any]) -> frozenset[int]:
    """The numbers of the arguments of which nothing is read in a call with these values."""
    given = [value.value if isinstance(value, Box) else value for value in values]
    arguments = {p.name: value for p, value in zip(prototype.parameters[1:], given, strict=True)}
    names = prototype.unread_arguments(arguments)
    return frozenset(i for i, name in enumerate(arguments) if name in names)


def _check(prototype: Prototype, parameter: Parameter) -> Check:
    if parameter.role is Role.count:
        return lambda value: None
    if not (parameter.is_tensor or parameter.is_tensor_array):
        return _required(parameter)
    accepted = frozenset(prototype.dtypes_of(parameter.name)) if parameter.is_argument else None
    one = _tensor_check(prototype, parameter, accepted)
    is_one = parameter.is_tensor or parameter.annotation is kinds.SparseIn
    return one if is_one else _entries_check(parameter, one)


def _required(parameter: Parameter) -> Check:
    def check(value: Any) -> None:
        if value is None and not parameter.optional:
            raise ValueError(f"{parameter.c_name} is required, NULL was given")

    return check


def _tensor_check(prototype: Prototype, parameter: Parameter, accepted: frozenset[Dtype] | None) -> Check:
    required, on_host = _required(parameter), parameter.device is Device.host

    def check(value: Any) -> None:
        if value is None:
            required(value)
        elif accepted is not None and value.dtype not in accepted:
            names = ", ".join(dtype.name for dtype in prototype.dtypes_of(parameter.name))
            raise UnsupportedDtypeError(f"{parameter.c_name} is {value.dtype.name}, expected one of {names}")
        elif on_host and value.memory_kind is not Device.host:
            raise ValueError(f"{parameter.c_name} lies on the device, expected it in host memory")

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


def _check_shapes(prototype: Prototype, given: Mapping[str, Any]) -> None:
    """ValueError unless the tensors have the sizes the prototype says, the same wherever they have one name."""
    known: dict[str, tuple[int, str]] = {}
    for name, sizes in prototype.shapes.items():
        if given[name] is None:
            continue
        shape, text = given[name].shape, f"[{', '.join(map(str, sizes))}]"
        if len(shape) != len(sizes):
            raise ValueError(f"{name} has shape {shape}, expected {text}")
        for size, length in zip(sizes, shape, strict=True):
            if isinstance(size, str) and size not in known:
                known[size] = (given[size], "") if size in given else (length, f", which {name} has as {length}")
            expected, source = (size, "") if isinstance(size, int) else known[size]
            if length != expected:
                what = f"{size} = {expected}" if isinstance(size, str) else str(size)
                raise ValueError(f"{name} has shape {shape}, expected {text} with {what}{source}")


def _check_count(parameter: Parameter, entries: Sequence[Any] | None, count: int) -> None:
    if entries is not None and len(entries) != count:
        raise ValueError(f"{parameter.c_name} has {len(entries)} entries, the count is {count}")


def _check_result(prototype: Prototype, parameter: Parameter, result: Any, arguments: Mapping[str, Any]) -> None:
    """ValueError if `result`, what the call passes for `parameter`, can't hold what the standard puts there."""
    entries = enumerate(result or ()) if parameter.is_tensor_array else [(None, result)] if result else ()
    for entry, tensor in entries:
        if not prototype.can_hold(parameter.name, tensor.dtype, arguments, entry):
            raise ValueError(
                f"{parameter.c_name} is {tensor.dtype.name}, {_wanted(prototype, parameter, arguments, entry)}"
            )


def _wanted(prototype: Prototype, parameter: Parameter, arguments: Mapping[str, Any], entry: int | None) -> str:
    """What a result has to be, for an error message."""
    if prototype.selectable_dtypes:
        return f"expected one of {', '.join(dtype.name for dtype in prototype.selectable_dtypes)}"
    usual = prototype.infer(parameter.name, arguments, entry)
    return f"the result is {usual.name if usual is not None else 'another'}"
