"""From an entry of a case configuration to cases of our own, each with what is called and why it can't be.

No reference runs: the cases are described, and `diopi_test.baseline.on_demand` computes their results when a run needs
them.
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
from diopi_proto.messages import suggest
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.baseline.descriptions import PendingTensor
from diopi_test.cases.model import Case, CaseClass, ResultOverride, TensorSpec, tensor_specs
from diopi_test.cases.open_calls import reason_open
from diopi_test.oracle.reference import find_reference, takes_out
from diopi_test.original.adapters import Call, adapt
from diopi_test.original.attributes import converted, is_usual, usual
from diopi_test.original.entries import Entry, EntryError, TensorArguments, dtypes_by_tensor, number_of_cases
from diopi_test.original.gradients import gradient_case, gradient_of
from diopi_test.original.names import Meaning, meanings, near
from diopi_test.original.tensors import single_tensor, sizes_of, tensor_argument

SEED = 0
"""Of the generator of functions that draw."""

WITH_NEW_AXIS = ("diopiStack",)
"""Functions whose axis is one of the result, which has one more than the tensors."""

MOST_CASES = 10_000
"""Cases of an entry at most."""


@final
@dataclass(frozen=True)
class Origin:
    """Where a case comes from: the entry, its function, the number of the case, and what the entry gave for it."""

    entry: str
    function: str
    number: int
    given: Mapping[str, Any]
    dtypes: Mapping[str, Dtype]


@final
@dataclass(frozen=True)
class FunctionCase:
    """A case and the function that it calls."""

    function: str
    case: Case

    @property
    def label(self) -> str:
        """What distinguishes the case from the function's other cases."""
        return self.case.label

    @property
    def dtype(self) -> Dtype:
        """The element type under test."""
        return self.case.dtype

    @property
    def id(self) -> str:
        """`function[label]`."""
        return f"{self.function}[{self.label}]"


@final
@dataclass(frozen=True)
class Translated:
    """A case, and where it comes from."""

    case: FunctionCase
    origin: Origin


@final
@dataclass(frozen=True)
class NotTranslated:
    """What could not be translated, and why; `is_internal` if an error of the project's is the reason."""

    line: int
    what: str
    why: str
    is_internal: bool = False


def translate(entry: Entry) -> Iterator[Translated | NotTranslated]:
    """The cases of an entry, and what of it can't be one; gradients follow where tensors require them.

    Cases of one function have different labels.
    """
    yield from (NotTranslated(entry.line, entry.name, note) for note in entry.notes)
    taken: set[str] = set()
    for made in _all_of(entry):
        if isinstance(made, Translated):
            case, number = made.case, 2
            while case.id in taken:
                label = f"{made.case.label}-{number}"
                case, number = replace(case, case=replace(case.case, label=label)), number + 1
            taken.add(case.id)
            made = replace(made, case=case)
        yield made


def _all_of(entry: Entry) -> Iterator[Translated | NotTranslated]:
    if not entry.functions:
        yield NotTranslated(entry.line, entry.name, "it names no function")
        return
    try:
        numbers, types = range(number_of_cases(entry)), dtypes_by_tensor(entry)
        if not numbers:
            raise EntryError("its lists are empty: it has no case")
        if len(numbers) * len(types) > MOST_CASES:
            raise EntryError(f"it has more than {MOST_CASES:,} cases")
    except EntryError as error:
        yield NotTranslated(entry.line, entry.name, str(error))
        return
    for name in entry.functions:
        found = meanings(name)
        if not found:
            problem = f"no standard function has this name.{suggest(near(name))}".removesuffix(".")
            yield NotTranslated(entry.line, f"{entry.name}: {name}", problem)
            continue
        for dtypes in types:
            for number in numbers:
                yield from _translated(entry, name, found, number, dtypes)
        if lacking := _without_gradient(entry, found):
            yield lacking


def _translated(
    entry: Entry, name: str, found: Sequence[Meaning], number: int, dtypes: Mapping[str, Dtype]
) -> Iterator[Translated | NotTranslated]:
    """The cases with one number and element type: of the call, of its form in place and of its gradient."""
    what = f"{entry.name}: {name}, case {number}, {', '.join(dict.fromkeys(dtype.name for dtype in dtypes.values()))}"
    try:
        origin = Origin(entry.name, name, number, _given(entry, number), dtypes)
        prototype, case = _case(entry, found, number, dtypes)
        yield Translated(_checked(prototype, case), origin)
        if entry.is_inplace and (form := find_form(prototype.base, inplace=True, scalar=prototype.form == "scalar")):
            changed = replace(
                case, results={k: v for k, v in case.results.items() if k not in _names(prototype.results)}
            )
            yield Translated(_checked(form, changed), origin)
        if _requires_grad(entry) and gradient_of(prototype) and is_floating(case.dtype):
            yield Translated(_checked(*gradient_case(prototype, case)), origin)
    except EntryError as error:
        yield NotTranslated(entry.line, what, str(error))
    except Exception as error:  # an error of this module costs one case, and is reported as what it is
        yield NotTranslated(entry.line, what, f"internal error: {type(error).__name__}: {error}", is_internal=True)


def _requires_grad(entry: Entry) -> bool:
    return any(tensors.requires_grad for tensors in entry.tensors)


def _without_gradient(entry: Entry, found: Sequence[Meaning]) -> NotTranslated | None:
    """That the gradient which the entry requires is no function of the standard; None if it is one, or not required."""
    if not _requires_grad(entry) or any(gradient_of(meaning.prototype) for meaning in found):
        return None
    name = found[0].prototype.name
    return NotTranslated(entry.line, f"{entry.name}: gradient of {name}", "the standard has no function for it")


def _names(parameters: Sequence[Parameter]) -> list[str]:
    return [parameter.name for parameter in parameters]


def _checked(prototype: Prototype, case: Case) -> FunctionCase:
    """A case of the class it belongs to; EntryError if the arguments contradict a fact of the prototype."""
    if find_reference(prototype.name) is None:
        raise EntryError(f"{prototype.name} has no reference")
    _check_axes(prototype, case)
    _check_choices(prototype, case)
    known = {name: TensorSpec((), case.dtype) if _is_pending(v) else v for name, v in case.arguments.items()}
    case_class = CaseClass.open if reason_open(prototype, replace(case, arguments=known)) else CaseClass.basic
    return FunctionCase(prototype.name, replace(case, case_class=case_class))


def _is_pending(value: Any) -> bool:
    """Whether the shape of a tensor is not known yet; the case is classified again once it is."""
    return isinstance(value, PendingTensor)


def _check_axes(prototype: Prototype, case: Case) -> None:
    """EntryError if an axis is out of range for the tensor with the most axes."""
    ranks = [len(spec.shape) for value in case.arguments.values() for spec in tensor_specs(value)]
    for parameter in prototype.arguments:
        value, rank = case.arguments[parameter.name], max([1, *ranks]) + (prototype.base in WITH_NEW_AXIS)
        if parameter.fact(facts.NamesAxis) and value is not None and ranks:
            for axis in value if isinstance(value, tuple) else (value,):
                if not -rank <= axis < rank:
                    why = f"{parameter.name} {axis} is out of range for {rank} axes"
                    raise EntryError(f"{prototype.name} refuses it: {why}")


def _check_choices(prototype: Prototype, case: Case) -> None:
    """EntryError if an attribute is none of the values that it may have."""
    for parameter in prototype.arguments:
        value, choices = case.arguments[parameter.name], parameter.fact(facts.OneOf)
        if choices and value is not None and value not in choices.choices:
            expected = ", ".join(map(repr, choices.choices))
            raise EntryError(f"{prototype.name} refuses it: {parameter.name} is {value!r}, expected one of {expected}")


def _given(entry: Entry, number: int) -> dict[str, Any]:
    """The attributes, and the shapes of the tensors, of a case."""
    shapes = {name: t.shapes[number] for t in entry.tensors if t.shapes is not None for name in t.names}
    return {**{name: values[number] for name, values in entry.parameters.items()}, **shapes}


def _case(entry: Entry, found: Sequence[Meaning], number: int, dtypes: Mapping[str, Dtype]) -> tuple[Prototype, Case]:
    """The call as the first of the functions takes it that takes it; EntryError as of the first if none does."""
    problems: list[EntryError] = []
    for meaning in found:
        try:
            return _case_of(meaning, entry, number, dtypes)
        except EntryError as error:
            problems.append(error)
    raise problems[0]


def _case_of(meaning: Meaning, entry: Entry, number: int, dtypes: Mapping[str, Dtype]) -> tuple[Prototype, Case]:
    call = Call(meaning.prototype, dict(meaning.constants))
    for one in entry.tensors:
        for name in one.names:
            _enter_tensor(call, meaning, name, one, entry, number, dtypes[name])
    for name, listed in entry.parameters.items():
        _enter_attribute(call, meaning, name, listed[number])
    adapt(call)
    for name, value in call.others.items():
        if not meaning.says(name, value):
            raise EntryError(f"{call.prototype.name} has no argument {name!r}")
    prototype = _form(call)
    arguments = {p.name: _argument(prototype, p, call.values) for p in prototype.arguments}
    dtype = _tested(arguments, call.results, dtypes)
    label = f"{dtype.name}-{label_of(entry.label or entry.name)}-{number}"
    return prototype, Case(label, dtype, arguments, {**_results(call, prototype, arguments, dtype), **call.results})


def _form(call: Call) -> Prototype:
    """The function, or its scalar form if a number stands where it takes a tensor."""
    prototype, values = call.prototype, call.values
    numbers = [p for p in prototype.arguments if p.is_tensor and isinstance(values.get(p.name), bool | int | float)]
    if not numbers or prototype.form != "plain":
        return prototype
    scalar = find_form(prototype.base, inplace=False, scalar=True)
    if scalar is None:
        raise EntryError(f"{prototype.name} takes no number for {numbers[0].name}")
    return scalar


def _enter_tensor(
    call: Call, meaning: Meaning, name: str, one: TensorArguments, entry: Entry, number: int, dtype: Dtype
) -> None:
    """Enter a tensor as the argument of its name, as an entry of an array of tensors, or as the caller's result."""
    prototype = call.prototype
    if (found := meaning.parameter(name)) is not None:
        call.values[found] = tensor_argument(prototype, prototype.parameter(found), one, entry, number, dtype)
    elif (place := meaning.entry(name)) is not None:
        array = call.values.setdefault(place[0], [])
        array += [None] * (place[1] + 1 - len(array))
        array[place[1]] = single_tensor(prototype, prototype.parameter(place[0]), one, entry, number, dtype)
    elif (result := meaning.result(name)) is not None and one.shapes is not None:
        shape = one.shapes[number]
        if shape is not None:
            call.results[result] = ResultOverride(dtype, shape=sizes_of(prototype.parameter(result), shape))
    else:
        raise EntryError(f"{prototype.name} has no argument {name!r}")


def _enter_attribute(call: Call, meaning: Meaning, name: str, value: Any) -> None:
    """Enter an attribute as the argument of its name, as what orders the result, or for the adapters."""
    if (found := meaning.parameter(name)) is not None:
        call.values[found] = value
    elif name in OF_RESULTS:
        call.ordered[name] = value
    elif (place := meaning.entry(name)) is None or value is not None:
        call.others[name] = value
    else:
        array = call.values.setdefault(place[0], [])
        array += [None] * (place[1] + 1 - len(array))


def label_of(entry: str) -> str:
    """The name of an entry as a part of labels."""
    return re.sub(r"[^\w.-]", "_", entry)


OF_RESULTS = ("dtype", "size", "shape", "keepdim")
"""Attributes by which the original function orders its result; here the caller's tensor says it."""


def _results(
    call: Call, prototype: Prototype, arguments: Mapping[str, Any], dtype: Dtype
) -> dict[str, ResultOverride | None]:
    """What the caller's result tensors are, as the call orders them."""
    first, ordered = next(iter(prototype.results), None), call.ordered
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
            raise EntryError("step: expected another number than 0")
        results[first.name] = ResultOverride(dtype, shape=(max(0, ceil((end - start) / step)),))
    if ordered.get("keepdim") is True:
        shape = _kept(prototype, arguments)
        kept = {p.name: results.get(p.name) or ResultOverride() for p in prototype.results}
        results |= {name: replace(result, shape=shape) for name, result in kept.items()}
    return results


def _is_shape_chosen(prototype: Prototype, result: Parameter) -> bool:
    """Whether the caller chooses the shape of a result: by a fact, or because no argument says it."""
    reference = find_reference(prototype.name)
    is_written_alone = not any(p.is_tensor or p.is_tensor_array for p in prototype.arguments)
    return result.fact(facts.ShapeChosen) is not None or (
        is_written_alone and reference is not None and takes_out(reference)
    )


def _kept(prototype: Prototype, arguments: Mapping[str, Any]) -> tuple[int, ...]:
    """The shape of a reduction that keeps its axes, with one element."""
    reduced, axes = next(iter(arguments.values())), arguments.get("dim")
    if "dim" not in arguments or not isinstance(reduced, TensorSpec):
        raise EntryError(f"{prototype.name} has no argument 'keepdim'")
    rank = len(reduced.shape)
    listed = {axis % rank for axis in (axes if isinstance(axes, tuple) else [axes]) if axis is not None and rank}
    return tuple(1 if axis in listed or not listed else size for axis, size in enumerate(reduced.shape))


def _argument(prototype: Prototype, parameter: Parameter, values: Mapping[str, Any]) -> Any:
    """An argument of a case: what is given, else what PyTorch takes."""
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
        return converted(prototype, parameter, kernel)  # windows lie side by side
    if values.get(name) is None and (name not in values or is_usual(prototype.base, name)):
        return converted(prototype, parameter, usual(prototype.base, name))
    return converted(prototype, parameter, values[name])


def _tested(
    arguments: Mapping[str, Any], results: Mapping[str, ResultOverride | None], dtypes: Mapping[str, Dtype]
) -> Dtype:
    """The element type under test: of the first floating tensor, or of the first if there is none."""
    found = [spec.dtype for value in arguments.values() for spec in tensor_specs(value)]
    found = found or [one.dtype for one in results.values() if one and one.dtype] or list(dtypes.values())
    return next((dtype for dtype in found if is_floating(dtype) or is_complex(dtype)), found[0])
