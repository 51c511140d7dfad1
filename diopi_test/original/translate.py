"""Translate an entry of a case configuration to cases; state the reason for each part that can't be translated.

The cases are only described; no reference is evaluated. `diopi_test.baseline.on_demand` computes their results when a
run needs them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, final

from diopi_proto import facts
from diopi_proto import parameters as kinds
from diopi_proto.aten.table import find_form
from diopi_proto.dtypes import is_complex, is_floating
from diopi_proto.implementations import takes_out
from diopi_proto.messages import suggest
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.baseline.descriptions import PendingTensor
from diopi_test.cases.case import Case, CaseClass, ResultOverride, TensorSpec
from diopi_test.cases.selection.open_calls import reason_open
from diopi_test.oracle.reference import find_reference
from diopi_test.original.adapters import CallDraft, adapt_call
from diopi_test.original.attributes import convert_attribute, default_of, has_default
from diopi_test.original.entries import ConfigEntry, EntryError, TensorArguments, count_cases, dtypes_by_tensor
from diopi_test.original.gradients import gradient_case, gradient_of
from diopi_test.original.names import Meaning, meanings, similar_functions
from diopi_test.original.tensors import single_tensor, sizes_of, tensor_argument

SEED = 0
"""The seed of the generator that random functions take."""

ADDS_AXIS = ("diopiStack",)
"""The functions whose result has one axis more than the tensors."""

MAX_CASES = 10_000
"""The maximum number of cases of an entry."""


@final
@dataclass(frozen=True, kw_only=True)
class Origin:
    """The origin of a case.

    Attributes:
        entry: The name of the entry.
        function: The original name of the function.
        number: The number of the case in the entry, from 0.
        attributes: The attributes of the case and the shapes of its tensors, by name.
        dtypes: The element types of the tensors, by name.
    """

    entry: str
    function: str
    number: int
    attributes: Mapping[str, Any]
    dtypes: Mapping[str, Dtype]


@final
@dataclass(frozen=True)
class FunctionCase:
    """A case and the function that it calls."""

    function: str
    case: Case

    @property
    def label(self) -> str:
        """The label of the case, which is unique within the function."""
        return self.case.label

    @property
    def dtype(self) -> Dtype:
        """The element type under test."""
        return self.case.dtype

    @property
    def id(self) -> str:
        """The ID of the case, `function[label]`."""
        return f"{self.function}[{self.label}]"


@final
@dataclass(frozen=True)
class Translated:
    """A translated case and its origin."""

    case: FunctionCase
    origin: Origin


@final
@dataclass(frozen=True, kw_only=True)
class NotTranslated:
    """A part of an entry that could not be translated.

    Attributes:
        line: The line of the entry.
        subject: The part, such as a case or a key.
        reason: Why it could not be translated.
        is_internal: Whether the reason is an error in this program.
    """

    line: int
    subject: str
    reason: str
    is_internal: bool = False


def translate(entry: ConfigEntry) -> Iterator[Translated | NotTranslated]:
    """Translate the cases of an entry, with their gradients if tensors require them.

    Args:
        entry: The entry.

    Yields:
        The translated cases, with distinct labels, and a record for each part that can't be translated.
    """
    yield from (NotTranslated(line=entry.line, subject=entry.name, reason=note) for note in entry.notes)
    used_ids: set[str] = set()
    for outcome in _translate_cases(entry):
        if isinstance(outcome, Translated):
            case, number = outcome.case, 2
            while case.id in used_ids:
                label = f"{outcome.case.label}-{number}"
                case, number = replace(case, case=replace(case.case, label=label)), number + 1
            used_ids.add(case.id)
            outcome = replace(outcome, case=case)
        yield outcome


def _translate_cases(entry: ConfigEntry) -> Iterator[Translated | NotTranslated]:
    """Yield the cases of an entry for each function, combination of element types, and number."""
    if not entry.functions:
        yield NotTranslated(line=entry.line, subject=entry.name, reason="the entry names no function")
        return
    try:
        numbers, types = range(count_cases(entry)), dtypes_by_tensor(entry)
        if not numbers:
            raise EntryError("the entry has no cases: its lists are empty")
        if len(numbers) * len(types) > MAX_CASES:
            raise EntryError(f"the entry has more than {MAX_CASES:,} cases")
    except EntryError as error:
        yield NotTranslated(line=entry.line, subject=entry.name, reason=str(error))
        return
    for name in entry.functions:
        meanings_of_name = meanings(name)
        if not meanings_of_name:
            problem = f"no standard function has this name.{suggest(similar_functions(name))}".removesuffix(".")
            yield NotTranslated(line=entry.line, subject=f"{entry.name}: {name}", reason=problem)
            continue
        for dtypes in types:
            for number in numbers:
                yield from _translate_case(entry, name, meanings_of_name, number, dtypes)
        if missing_gradient := _missing_gradient(entry, meanings_of_name):
            yield missing_gradient


def _translate_case(
    entry: ConfigEntry, name: str, candidates: Sequence[Meaning], number: int, dtypes: Mapping[str, Dtype]
) -> Iterator[Translated | NotTranslated]:
    """Yield the cases of one number and one element type per tensor: the call, its in-place form, and its gradient.

    Args:
        entry: The entry.
        name: The original name of the function.
        candidates: The functions that the name may mean.
        number: The number of the case in the entry, from 0.
        dtypes: The element types of the tensors, by name.

    Yields:
        The cases. If one of the three can't be translated, a record with the reason follows instead of the rest.
    """
    subject = (
        f"{entry.name}: {name}, case {number}, {', '.join(dict.fromkeys(dtype.name for dtype in dtypes.values()))}"
    )
    try:
        origin = Origin(
            entry=entry.name, function=name, number=number, attributes=_attributes_of_case(entry, number), dtypes=dtypes
        )
        prototype, case = _case(entry, candidates, number, dtypes)
        yield Translated(_classify(prototype, case), origin)
        if entry.is_inplace and (form := find_form(prototype.base, inplace=True, scalar=prototype.form == "scalar")):
            changed = replace(
                case, results={k: v for k, v in case.results.items() if k not in _names(prototype.results)}
            )
            yield Translated(_classify(form, changed), origin)
        if _requires_grad(entry) and gradient_of(prototype) and is_floating(case.dtype):
            yield Translated(_classify(*gradient_case(prototype, case)), origin)
    except EntryError as error:
        yield NotTranslated(line=entry.line, subject=subject, reason=str(error))
    except Exception as error:  # affects only this case, and is reported as an internal error
        yield NotTranslated(
            line=entry.line,
            subject=subject,
            reason=f"internal error: {type(error).__name__}: {error}",
            is_internal=True,
        )


def _requires_grad(entry: ConfigEntry) -> bool:
    """Return whether the entry asks for the gradient of any tensor."""
    return any(tensors.requires_grad for tensors in entry.tensors)


def _missing_gradient(entry: ConfigEntry, candidates: Sequence[Meaning]) -> NotTranslated | None:
    """Return a record if the entry requires a gradient for which the standard has no function, else None."""
    if not _requires_grad(entry) or any(gradient_of(meaning.prototype) for meaning in candidates):
        return None
    name = candidates[0].prototype.name
    return NotTranslated(
        line=entry.line, subject=f"{entry.name}: gradient of {name}", reason="the standard has no function for it"
    )


def _names(parameters: Sequence[Parameter]) -> list[str]:
    """Return the names of the parameters."""
    return [parameter.name for parameter in parameters]


def _classify(prototype: Prototype, case: Case) -> FunctionCase:
    """Return a case of a function with its class.

    Raises:
        EntryError: The function has no reference, or the arguments contradict a fact of the prototype.
    """
    if find_reference(prototype.name) is None:
        raise EntryError(f"{prototype.name} has no reference")
    _check_axes(prototype, case)
    _check_choices(prototype, case)
    known = {name: TensorSpec((), case.dtype) if _is_pending(v) else v for name, v in case.arguments.items()}
    case_class = CaseClass.open if reason_open(prototype, replace(case, arguments=known)) else CaseClass.basic
    return FunctionCase(prototype.name, replace(case, case_class=case_class))


def _is_pending(value: Any) -> bool:
    """Return whether an argument is a tensor of yet unknown shape; its case is classified again when it is known."""
    return isinstance(value, PendingTensor)


def _check_axes(prototype: Prototype, case: Case) -> None:
    """Raise EntryError if an axis is out of range for the tensor with the most axes."""
    ranks = list(map(len, case.shapes))
    for parameter in prototype.arguments:
        value, rank = case.arguments[parameter.name], max([1, *ranks]) + (prototype.base in ADDS_AXIS)
        if parameter.fact(facts.NamesAxis) and value is not None and ranks:
            for axis in value if isinstance(value, tuple) else (value,):
                if not -rank <= axis < rank:
                    reason = f"{parameter.name} {axis} is out of range for {rank} axes"
                    raise EntryError(f"{prototype.name} rejects it: {reason}")


def _check_choices(prototype: Prototype, case: Case) -> None:
    """Raise EntryError if an attribute has a value that the standard does not allow."""
    for parameter in prototype.arguments:
        value, choices = case.arguments[parameter.name], parameter.fact(facts.OneOf)
        if choices and value is not None and value not in choices.choices:
            expected = ", ".join(map(repr, choices.choices))
            raise EntryError(f"{prototype.name} rejects it: {parameter.name} is {value!r}, expected one of {expected}")


def _attributes_of_case(entry: ConfigEntry, number: int) -> dict[str, Any]:
    """Return the attributes of a case and the shapes of its tensors, by name."""
    shapes = {name: t.shapes[number] for t in entry.tensors if t.shapes is not None for name in t.names}
    return {**{name: values[number] for name, values in entry.parameters.items()}, **shapes}


def _case(
    entry: ConfigEntry, candidates: Sequence[Meaning], number: int, dtypes: Mapping[str, Dtype]
) -> tuple[Prototype, Case]:
    """Return the case of the first function that accepts the arguments.

    Args:
        entry: The entry of the configuration.
        candidates: The functions that the name of the entry can mean.
        number: The number of the case in the entry.
        dtypes: The element type of each tensor.

    Raises:
        EntryError: No function accepts the arguments; the reason is that of the first function.
    """
    problems: list[EntryError] = []
    for meaning in candidates:
        try:
            return _case_of(meaning, entry, number, dtypes)
        except EntryError as error:
            problems.append(error)
    raise problems[0]


def _case_of(meaning: Meaning, entry: ConfigEntry, number: int, dtypes: Mapping[str, Dtype]) -> tuple[Prototype, Case]:
    """Return one case of an entry for one function that the original name may mean.

    Args:
        meaning: The function.
        entry: The entry.
        number: The number of the case in the entry, from 0.
        dtypes: The element types of the tensors, by name.

    Returns:
        The function, or its scalar form, and the case.

    Raises:
        EntryError: The function does not accept the arguments.
    """
    call = CallDraft(prototype=meaning.prototype, values=dict(meaning.constants))
    for tensors in entry.tensors:
        for name in tensors.names:
            _enter_tensor(call, meaning, name, tensors, entry, number, dtypes[name])
    for name, listed in entry.parameters.items():
        _enter_attribute(call, meaning, name, listed[number])
    adapt_call(call)
    for name, value in call.unmatched.items():
        if not meaning.implies(name, value):
            raise EntryError(f"{call.prototype.name} has no argument {name!r}")
    prototype = _form(call)
    arguments = {p.name: _argument(prototype, p, call.values) for p in prototype.arguments}
    dtype = _dtype_under_test(arguments, call.results, dtypes)
    label = f"{dtype.name}-{escape_label(entry.label or entry.name)}-{number}"
    return prototype, Case(
        label, dtype, arguments, results={**_results(call, prototype, arguments, dtype), **call.results}
    )


def _form(call: CallDraft) -> Prototype:
    """Return the function, or its scalar form if an argument is a number instead of a tensor.

    Raises:
        EntryError: An argument is a number, but the function has no scalar form.
    """
    prototype, values = call.prototype, call.values
    numbers = [p for p in prototype.arguments if p.is_tensor and isinstance(values.get(p.name), bool | int | float)]
    if not numbers or prototype.form != "plain":
        return prototype
    scalar = find_form(prototype.base, inplace=False, scalar=True)
    if scalar is None:
        raise EntryError(f"{prototype.name} does not accept a number for {numbers[0].name}")
    return scalar


def _enter_tensor(
    call: CallDraft,
    meaning: Meaning,
    name: str,
    tensors: TensorArguments,
    entry: ConfigEntry,
    number: int,
    dtype: Dtype,
) -> None:
    """Store a tensor of a case in `call`: as an argument, as an entry of an array, or as the caller's result.

    Args:
        call: The call, which is changed in place.
        meaning: The function.
        name: The original name of the tensor.
        tensors: The specification of the tensor in the entry.
        entry: The entry.
        number: The number of the case in the entry, from 0.
        dtype: The element type.

    Raises:
        EntryError: The function has no such argument or result, or the tensor is invalid.
    """
    prototype = call.prototype
    if (parameter := meaning.parameter(name)) is not None:
        call.values[parameter] = tensor_argument(
            prototype, prototype.parameter(parameter), tensors, entry, number, dtype
        )
    elif (place := meaning.entry(name)) is not None:
        array = call.values.setdefault(place[0], [])
        array += [None] * (place[1] + 1 - len(array))
        array[place[1]] = single_tensor(prototype, prototype.parameter(place[0]), tensors, entry, number, dtype)
    elif (result := meaning.result(name)) is not None and tensors.shapes is not None:
        shape = tensors.shapes[number]
        if shape is not None:
            call.results[result] = ResultOverride(dtype, shape=sizes_of(prototype.parameter(result), shape))
    else:
        raise EntryError(f"{prototype.name} has no argument {name!r}")


def _enter_attribute(call: CallDraft, meaning: Meaning, name: str, value: Any) -> None:
    """Store an attribute of an entry in the draft of a call.

    The attribute becomes an argument, or an attribute of the result. Any other attribute is stored as unmatched, for
    the adapters to translate. None for an entry of an array of tensors lengthens the array.
    """
    if (parameter := meaning.parameter(name)) is not None:
        call.values[parameter] = value
    elif name in RESULT_ATTRIBUTES:
        call.result_attributes[name] = value
    elif (place := meaning.entry(name)) is None or value is not None:
        call.unmatched[name] = value
    else:
        array = call.values.setdefault(place[0], [])
        array += [None] * (place[1] + 1 - len(array))


def escape_label(entry: str) -> str:
    """Return the name of an entry with characters replaced that labels can't have."""
    return re.sub(r"[^\w.-]", "_", entry)


RESULT_ATTRIBUTES = ("dtype", "size", "shape", "keepdim")
"""The attributes that determine the result of the original function; here the caller allocates the result."""


def _results(
    call: CallDraft, prototype: Prototype, arguments: Mapping[str, Any], dtype: Dtype
) -> dict[str, ResultOverride | None]:
    """Return the properties of the caller's result tensors that the attributes of the call determine.

    Args:
        call: The call.
        prototype: The function, or its scalar form.
        arguments: The arguments by name.
        dtype: The element type under test.

    Returns:
        The properties by name of the result; results without such properties are absent.

    Raises:
        EntryError: An attribute does not fit the function, or the step of diopiArange is 0.
    """
    first, ordered = next(iter(prototype.results), None), call.result_attributes
    results: dict[str, ResultOverride | None] = {}
    if isinstance(ordered.get("dtype"), Dtype) and first is not None:
        results[first.name] = ResultOverride(dtype=ordered["dtype"])
    if (size := ordered.get("size", ordered.get("shape"))) is not None and first is not None:
        if not _is_shape_chosen(prototype, first):
            raise EntryError(f"{prototype.name} has no argument for the size of its result")
        results[first.name] = ResultOverride(ordered.get("dtype"), shape=sizes_of(first, size))
    if prototype.base == "diopiArange" and first is not None:
        start, end, step = (arguments[name] for name in ("start", "end", "step"))
        if not step:
            raise EntryError("step: expected a number other than 0, found 0")
        results[first.name] = ResultOverride(dtype, shape=(max(0, ceil((end - start) / step)),))
    if ordered.get("keepdim") is True:
        shape = _reduced_shape(prototype, arguments)
        reduced = {p.name: results.get(p.name) or ResultOverride() for p in prototype.results}
        results |= {name: replace(result, shape=shape) for name, result in reduced.items()}
    return results


def _is_shape_chosen(prototype: Prototype, result: Parameter) -> bool:
    """Return whether the caller chooses the shape of a result."""
    reference = find_reference(prototype.name)
    is_written_alone = not any(p.is_tensor or p.is_tensor_array for p in prototype.arguments)
    return result.fact(facts.ShapeChosen) is not None or (
        is_written_alone and reference is not None and takes_out(reference)
    )


def _reduced_shape(prototype: Prototype, arguments: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the shape of a reduction that keeps the reduced axes with size 1.

    Raises:
        EntryError: The function is not a reduction of a tensor along `dim`.
    """
    reduced, axes = next(iter(arguments.values())), arguments.get("dim")
    if "dim" not in arguments or not isinstance(reduced, TensorSpec):
        raise EntryError(f"{prototype.name} has no argument 'keepdim'")
    rank = len(reduced.shape)
    listed = {axis % rank for axis in (axes if isinstance(axes, tuple) else [axes]) if axis is not None and rank}
    return tuple(1 if axis in listed or not listed else size for axis, size in enumerate(reduced.shape))


def _argument(prototype: Prototype, parameter: Parameter, values: Mapping[str, Any]) -> Any:
    """Return an argument of a case: the value of the entry, or PyTorch's default value.

    Raises:
        EntryError: A required tensor is missing.
    """
    name, kind = parameter.name, parameter.annotation
    if issubclass(kind, kinds.Generator):
        return SEED
    if name in values and (parameter.is_tensor or parameter.is_tensor_array):
        return values[name]
    if name not in values and parameter.optional:
        return None
    if parameter.is_tensor or parameter.is_tensor_array:
        raise EntryError(f"{prototype.name} needs a tensor for {name}")
    kernel = values.get("kernel_size", values.get("ksize"))
    if values.get(name) is None and name == "stride" and kernel is not None:
        return convert_attribute(prototype, parameter, kernel)  # PyTorch's default: windows do not overlap
    if values.get(name) is None and (name not in values or has_default(prototype.base, name)):
        return convert_attribute(prototype, parameter, default_of(prototype.base, name))
    return convert_attribute(prototype, parameter, values[name])


def _dtype_under_test(
    arguments: Mapping[str, Any], results: Mapping[str, ResultOverride | None], dtypes: Mapping[str, Dtype]
) -> Dtype:
    """Return the element type under test: that of the first floating-point or complex tensor, or else of the first."""
    dtypes_of_tensors = [spec.dtype for value in arguments.values() for spec in TensorSpec.all_in(value)]
    dtypes_of_tensors = (
        dtypes_of_tensors
        or [result.dtype for result in results.values() if result and result.dtype]
        or list(dtypes.values())
    )
    return next((dtype for dtype in dtypes_of_tensors if is_floating(dtype) or is_complex(dtype)), dtypes_of_tensors[0])
