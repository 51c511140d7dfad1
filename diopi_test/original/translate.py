"""From an entry of a case configuration to cases of our own, each with what is called and why it can't be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod
from typing import Any, final

from diopi_proto import facts
from diopi_proto import parameters as kinds
from diopi_proto.aten.table import form_of
from diopi_proto.dtypes import is_complex, is_floating
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.baseline.evaluate import Evaluation, make_baseline_case
from diopi_test.baseline.records import BaselineCase
from diopi_test.cases.domains import Domain
from diopi_test.cases.layouts import Layout, contiguous, strides
from diopi_test.cases.model import Case, CaseClass, ResultOverride, TensorSpec
from diopi_test.cases.open_calls import why_open
from diopi_test.fuzz.known import known, named_tensors
from diopi_test.fuzz.legal import IllegalError, judged_where_stable
from diopi_test.fuzz.relations import FAILURES
from diopi_test.oracle.reference import reference_of
from diopi_test.original.attributes import converted, is_usual, usual
from diopi_test.original.entries import Entry, EntryError, TensorArguments, dtypes_by_tensor, number_of_cases
from diopi_test.original.gradients import gradient_case, gradient_of
from diopi_test.original.names import Meaning, meanings, near
from diopi_test.original.values import domain_of, given

SEED = 0
"""Of the generator of functions that draw."""

MOST_CASES = 10_000
"""Cases of an entry at most."""

MOST_ELEMENTS = 2**24
"""Elements of a tensor at most: the level large has larger ones, which are not stored."""


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
class Translated:
    """A case with its data and expected results, and where it comes from."""

    case: BaselineCase
    origin: Origin


@final
@dataclass(frozen=True)
class NotTranslated:
    """What could not be translated, and why."""

    line: int
    what: str
    why: str


def translate(entry: Entry) -> Iterator[Translated | NotTranslated]:
    """The cases of an entry, and what of it can't be one; gradients follow where tensors require them."""
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
            hint = f"; like it are {', '.join(near(name))}" if near(name) else ""
            yield NotTranslated(entry.line, f"{entry.name}: {name}", f"no standard function has this name{hint}")
            continue
        for dtypes in types:
            for number in numbers:
                yield from _translated(entry, name, found, number, dtypes)
        if lacking := _without_gradient(entry, found):
            yield lacking


def _translated(
    entry: Entry, name: str, found: Sequence[Meaning], number: int, dtypes: Mapping[str, Dtype]
) -> Iterator[Translated | NotTranslated]:
    what = f"{entry.name}: {name}, case {number}, {', '.join(dict.fromkeys(dtype.name for dtype in dtypes.values()))}"
    try:
        origin = Origin(entry.name, name, number, _given(entry, number), dtypes)
        prototype, case = _case(entry, found, number, dtypes)
        yield Translated(_made(prototype, case), origin)
        if entry.is_inplace and (form := form_of(prototype.base, inplace=True, scalar=prototype.form == "scalar")):
            changed = replace(
                case, results={k: v for k, v in case.results.items() if k not in _names(prototype.results)}
            )
            yield Translated(_made(form, changed), origin)
        if _requires_grad(entry) and gradient_of(prototype) and is_floating(case.dtype):
            yield Translated(_made(*gradient_case(prototype, case)), origin)
    except EntryError as error:
        yield NotTranslated(entry.line, what, str(error))


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


def _made(prototype: Prototype, case: Case) -> BaselineCase:
    """A case with its data and what must come of it; EntryError if the reference refuses it."""
    function = reference_of(prototype.name)
    if function is None:
        raise EntryError(f"{prototype.name} has no reference")
    case = replace(case, case_class=CaseClass.open if why_open(prototype, case) else CaseClass.basic)
    try:
        computed = make_baseline_case(prototype, case)
        return judged_where_stable(computed, Evaluation(prototype, function, case), computed)
    except (*FAILURES, MemoryError, IllegalError) as error:
        raise EntryError(f"{prototype.name} refuses it: {type(error).__name__}: {error}") from error


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
    values: dict[str, Any] = dict(meaning.constants)
    ordered: dict[str, Any] = {}
    prototype = meaning.prototype
    tensors = {name: (one, dtypes[name]) for one in entry.tensors for name in one.names}
    for name, (one, dtype) in tensors.items():
        parameter = _parameter(meaning, name)
        values[parameter.name] = _tensor(prototype, parameter, one, entry, number, dtype)
    for name, listed in entry.parameters.items():
        value = listed[number]
        if (found := meaning.parameter(name)) is not None:
            values[found] = value
        elif name in OF_RESULTS:
            ordered[name] = value
        elif not meaning.says(name, value):
            raise EntryError(f"{prototype.name} has no argument {name!r}")
    numbers = [p for p in prototype.arguments if p.is_tensor and isinstance(values.get(p.name), bool | int | float)]
    if numbers and prototype.form == "plain":
        scalar = form_of(prototype.base, inplace=False, scalar=True)
        if scalar is None:
            raise EntryError(f"{prototype.name} takes no number for {numbers[0].name}")
        prototype = scalar
    arguments = {p.name: _argument(prototype, p, values) for p in prototype.arguments}
    dtype = _tested(arguments, dtypes)
    label = f"{dtype.name}-{label_of(entry.name)}-{number}"
    return prototype, Case(label, dtype, arguments, _results(prototype, ordered, arguments, dtype))


def label_of(entry: str) -> str:
    """The name of an entry as a part of labels."""
    return re.sub(r"[^\w.-]", "_", entry)


def _parameter(meaning: Meaning, name: str) -> Parameter:
    found = meaning.parameter(name)
    if found is None:
        raise EntryError(f"{meaning.prototype.name} has no argument {name!r}")
    return meaning.prototype.parameter(found)


OF_RESULTS = ("dtype", "size", "shape", "keepdim")
"""Attributes by which the original function orders its result; here the caller's tensor says it."""


def _results(
    prototype: Prototype, ordered: Mapping[str, Any], arguments: Mapping[str, Any], dtype: Dtype
) -> dict[str, ResultOverride]:
    """What the caller's result tensors are, as the call orders them."""
    first = prototype.results[0] if prototype.results else None
    results: dict[str, ResultOverride] = {}
    if isinstance(ordered.get("dtype"), Dtype) and first is not None:
        results[first.name] = ResultOverride(dtype=ordered["dtype"])
    if (size := ordered.get("size", ordered.get("shape"))) is not None and first is not None:
        if not first.fact(facts.ShapeChosen):
            raise EntryError(f"{prototype.name} has no argument for the size of its result")
        results[first.name] = ResultOverride(shape=_sizes(first, size))
    if prototype.base == "diopiArange" and first is not None:
        start, end, step = (arguments[name] for name in ("start", "end", "step"))
        if not step:
            raise EntryError("step: expected another number than 0")
        results[first.name] = ResultOverride(dtype, shape=(max(0, ceil((end - start) / step)),))
    if ordered.get("keepdim") is True:
        shape = _kept(prototype, arguments)
        results |= {p.name: replace(results.get(p.name, ResultOverride()), shape=shape) for p in prototype.results}
    return results


def _kept(prototype: Prototype, arguments: Mapping[str, Any]) -> tuple[int, ...]:
    """The shape of a reduction that keeps its axes, with one element."""
    reduced, axes = next(iter(arguments.values())), arguments.get("dim")
    if "dim" not in arguments or not isinstance(reduced, TensorSpec):
        raise EntryError(f"{prototype.name} has no argument 'keepdim'")
    rank = len(reduced.shape)
    listed = {axis % rank for axis in (axes if isinstance(axes, tuple) else [axes]) if axis is not None and rank}
    return tuple(1 if axis in listed or not listed else size for axis, size in enumerate(reduced.shape))


def _tensor(
    prototype: Prototype, parameter: Parameter, one: TensorArguments, entry: Entry, number: int, dtype: Dtype
) -> TensorSpec | list[TensorSpec] | None:
    """A tensor argument of a case, an array of them, or None where it is left out."""
    if not parameter.is_tensor and not parameter.is_tensor_array:
        raise EntryError(f"{prototype.name} takes no tensor for {parameter.name}")
    generated = one.generated or entry.generated
    if one.values is not None:
        shape, domain = given(one.values[number])
    elif one.shapes is None:
        raise EntryError(f"{parameter.name} has neither shape nor value")
    else:
        shape = one.shapes[number]
        domain = (domain_of(generated) if generated else None) or _own_domain(prototype, parameter.name)
    layout = contiguous if one.strides is None or one.strides[number] is None else _strides(one.strides[number])
    if shape is None:
        return None
    if parameter.is_tensor_array:
        if not isinstance(shape, list | tuple):
            raise EntryError(f"shape of {parameter.name}: expected the shapes of an array of tensors, found {shape!r}")
        return [_spec(prototype, parameter, each, dtype, domain, layout) for each in shape]
    return _spec(prototype, parameter, shape, dtype, domain, layout)


def _strides(given: Any) -> Layout:
    try:
        return strides(*given)
    except (TypeError, ValueError) as error:
        raise EntryError(f"stride: expected numbers, none negative, found {given!r}") from error


def _spec(
    prototype: Prototype, parameter: Parameter, shape: Any, dtype: Dtype, domain: Domain, layout: Layout
) -> TensorSpec:
    sizes = _sizes(parameter, shape)
    if dtype not in prototype.dtypes_of(parameter.name):
        raise EntryError(f"{prototype.name} takes no {dtype.name} for {parameter.name}")
    try:
        storage = layout(sizes).storage_elements
    except ValueError as error:
        raise EntryError(f"stride of {parameter.name}: {error}") from error
    if storage > MOST_ELEMENTS:
        raise EntryError(f"stride of {parameter.name}: its storage has more than {MOST_ELEMENTS:,} elements")
    return TensorSpec(sizes, dtype, domain, layout)


def _sizes(parameter: Parameter, shape: Any) -> tuple[int, ...]:
    """A shape; a number is that of one axis."""
    sizes = (shape,) if type(shape) is int else shape
    if not isinstance(sizes, list | tuple) or not all(type(size) is int and size >= 0 for size in sizes):
        raise EntryError(f"shape of {parameter.name}: expected whole numbers, found {shape!r}")
    if prod(sizes) > MOST_ELEMENTS:
        raise EntryError(f"shape of {parameter.name}: it has more than {MOST_ELEMENTS:,} elements: {shape!r}")
    return tuple(sizes)


def _own_domain(prototype: Prototype, name: str) -> Domain:
    """Where the function's own cases draw this argument, for a generator that is not known."""
    specs = [spec for case in known(prototype.name).cases for n, spec in named_tensors(case) if n == name]
    found = next((spec.domain for spec in specs if spec.compute is None), None)
    if found is None:
        raise EntryError(f"how {name} is drawn is not known")
    return found


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
    if values.get(name) is None and name == "stride" and "kernel_size" in values:
        return converted(prototype, parameter, values["kernel_size"])  # windows lie side by side
    if values.get(name) is None and (name not in values or is_usual(prototype.base, name)):
        return converted(prototype, parameter, usual(prototype.base, name))
    return converted(prototype, parameter, values[name])


def _tested(arguments: Mapping[str, Any], dtypes: Mapping[str, Dtype]) -> Dtype:
    """The element type under test: of the first floating tensor, or of the first if there is none."""
    listed = [one for value in arguments.values() for one in (value if isinstance(value, list) else [value])]
    found = [one.dtype for one in listed if isinstance(one, TensorSpec)] or list(dtypes.values())
    return next((dtype for dtype in found if is_floating(dtype) or is_complex(dtype)), found[0])
