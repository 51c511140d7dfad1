"""Cases with other numbers: each numeric attribute in each region of its range, and each scalar in each kind.

Such a case differs from one of the function's own cases in only one number. It exists only if no own case has such a
number. `number_demands` derives what must be tested from the prototype and from `REJECTED_NUMBERS`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from diopi_proto import facts
from diopi_proto.dtypes import category
from diopi_proto.interface import header_of
from diopi_proto.parameters import Factor, Parameter, Scalar, f32, f64
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.model import Case, CaseClass, tensor_specs
from diopi_test.cases.open_calls import reason_open

REGIONS = {"zero": 0.0, "negative": -0.625, "whole": 1.0, "fraction": 0.375}
"""By region, the number to test if the function's own cases have no number in the region."""

KINDS = {"bool": True, "int": 2, "float": 1.75}
"""By kind of scalar, the number to test, in the order of the categories of element types."""


@dataclass(frozen=True)
class NumberDemand:
    """The demand to test a parameter of a function in a region, or as a scalar of a kind, in one of several dtypes.

    Attributes:
        function: The function.
        name: The parameter.
        property: The region or the kind.
        dtypes: The element types under test; a case in one of them meets the demand.
    """

    function: str
    name: str
    property: str
    dtypes: Sequence[Dtype]

    def is_met(self, cases: Iterable[Case]) -> bool:
        """Return whether one of the function's cases meets the demand."""
        return any(
            case.dtype in self.dtypes and self.property in number_properties(case.arguments[self.name])
            for case in cases
        )


@dataclass(frozen=True)
class RejectedNumbers:
    """Regions and kinds in which functions reject numbers.

    Attributes:
        functions: A regular expression that is searched in function names.
        names: The parameters.
        property: The regions and kinds.
        reason: The reason for the rejection.
        categories: The categories of element types under test to which this applies.
    """

    functions: str
    names: Sequence[str]
    property: Sequence[str]
    reason: str
    categories: Sequence[int] = (0, 1, 2, 3)

    def includes(self, demand: NumberDemand) -> bool:
        """Return whether a demand asks for a rejected number."""
        return (
            demand.name in self.names
            and demand.property in self.property
            and category(demand.dtypes[0]) in self.categories
            and re.search(self.functions, demand.function) is not None
        )


NOT_NEGATIVE = "torch.optim rejects negative numbers"

REJECTED_NUMBERS = (
    RejectedNumbers("Dropout|BernoulliScalar", ["p"], ["negative"], "a probability"),
    RejectedNumbers("SigmoidFocalLoss", ["gamma"], ["negative"], "focal loss is defined for γ ≥ 0"),
    RejectedNumbers("Nms", ["iou_threshold"], ["negative"], "an overlap is never negative"),
    RejectedNumbers(
        "RoiAlign", ["spatial_scale"], ["zero", "negative"], "the ratio of the sizes of a feature map and an image"
    ),
    RejectedNumbers("Sgd|Adam|Rmsprop|Adadelta", ["lr", "weight_decay", "eps"], ["negative"], NOT_NEGATIVE),
    RejectedNumbers("Sgd|Rmsprop|Adadelta", ["momentum", "alpha", "rho"], ["negative"], NOT_NEGATIVE),
    RejectedNumbers(
        "Adam",
        ["beta1", "beta2"],
        ["negative", "whole"],
        "torch.optim accepts numbers from 0 up to, but not including, 1",
    ),
    RejectedNumbers("ClipGradNorm|EmbeddingRenorm_", ["max_norm"], ["negative"], "a norm is never negative"),
    RejectedNumbers("Normal(Inp|TensorScalar)?$", ["std"], ["negative"], "torch.normal rejects it"),
    RejectedNumbers(
        "AmpUpdateScale", ["scale_growth_factor", "scale_backoff_factor"], ["zero", "negative"], "a scale is positive"
    ),
    RejectedNumbers("Arange", ["step"], ["zero"], "a range with step 0 never ends"),
    RejectedNumbers("BatchNormElemt", ["eps"], ["zero", "negative"], "it does not affect the results"),
    RejectedNumbers("CdistBackward", ["p"], ["negative"], "the forward function rejects it"),
    RejectedNumbers("Foreachnorm", ["ord"], ["bool"], "torch._foreach_norm rejects it"),
    RejectedNumbers("Bitwise", ["other"], ["fraction", "float"], "a floating scalar is rejected"),
    RejectedNumbers(
        "diopi(Add|Sub)(Inp)?(Scalar)?$", ["alpha"], ["float"], "torch.add rejects it for integers", (0, 1)
    ),
    RejectedNumbers(
        "diopi(Add|Sub)(Inp)?(Scalar)?$", ["alpha"], ["bool"], "torch.add accepts it only for bool", (1, 2, 3)
    ),
    RejectedNumbers("diopiSub", ["other", "alpha"], ["bool"], "torch.sub rejects bool"),
    RejectedNumbers("diopiRemainder", ["input", "other"], ["bool"], "torch.remainder rejects two bools", (0,)),
)


@dataclass(frozen=True)
class NumberChoice:
    """A number that functions are tested with instead of the default of a region or kind."""

    functions: str
    names: Sequence[str]
    property: str
    number: Any
    non_discriminating: str = ""

    def suits(self, demand: NumberDemand) -> bool:
        """Return whether the number applies to a demand."""
        return (
            demand.name in self.names
            and demand.property == self.property
            and bool(re.search(self.functions, demand.function))
        )


NO_MEMORY = "a state that decays to nothing at once has no part in what follows"

NUMBER_CHOICES = (
    NumberChoice("Hardtanh|Clamp(Inp)?Scalar$", ["min_val", "min"], "bool", False),
    NumberChoice("ClampMin", ["min"], "bool", False),
    NumberChoice("BitwiseOr", ["other"], "bool", False),
    NumberChoice("LeakyRelu", ["negative_slope"], "bool", False),
    NumberChoice("PowScalar", ["input"], "bool", False),
    NumberChoice("(Le|Gt)(Inp)?Scalar", ["other"], "bool", False),
    NumberChoice("Foreachadd", ["other"], "int", 0),
    NumberChoice("Foreachadd", ["other"], "float", 0.0),
    NumberChoice("Sgd", ["dampening"], "whole", 2.0),
    NumberChoice("Lerp", ["weight"], "bool", True, "one end has all the weight"),
    NumberChoice("Adam|Adadelta", ["beta1", "beta2", "rho"], "zero", 0.0, NO_MEMORY),
)


def accepts_any_number(prototype: Prototype) -> bool:
    """Return whether the function is one of PyTorch's, which accept nearly any number, unlike extensions."""
    return header_of(prototype.name) == "functions.h"


def number_demands(
    prototype: Prototype, exceptions: Sequence[RejectedNumbers] = REJECTED_NUMBERS
) -> Iterator[NumberDemand]:
    """Yield the demands for a function's numbers, without the exceptions."""
    for parameter in prototype.arguments:
        if accepts_any_number(prototype) and issubclass(parameter.annotation, f64 | f32 | Scalar):
            candidates = (
                NumberDemand(prototype.name, parameter.name, *property_and_dtypes)
                for property_and_dtypes in _properties_to_test(prototype, parameter)
            )
            yield from (
                demand for demand in candidates if not any(exception.includes(demand) for exception in exceptions)
            )


def _properties_to_test(prototype: Prototype, parameter: Parameter) -> Iterator[tuple[str, Sequence[Dtype]]]:
    """Yield properties and element types to test a parameter in.

    They are the regions that no fact excludes, and the kinds of scalars that a tensor which is overwritten can
    represent,
    for each category of element types. For factors they are the kinds for each element type.
    """
    positive = parameter.fact(facts.AtLeast) is not None
    yield from ((region, prototype.dtypes) for region in REGIONS if not (positive and region == "negative"))
    if issubclass(parameter.annotation, Scalar):
        is_factor = issubclass(parameter.annotation, Factor) or parameter.name in ("alpha", "beta")
        by_category = sorted(prototype.dtypes, key=category)
        groups = [(dtype,) for dtype in by_category] if is_factor else _group_by_category(by_category)
        for dtypes in groups:
            highest = category(dtypes[0]) if prototype.is_inplace and not is_factor else 3
            yield from ((kind, dtypes) for number, kind in enumerate(KINDS) if number <= highest)


def _group_by_category(dtypes: Sequence[Dtype]) -> list[tuple[Dtype, ...]]:
    return [tuple(group) for _, group in groupby(dtypes, key=category)]


def number_properties(number: Any) -> Collection[str]:
    """Return the regions and the kind of a number; none for missing or non-finite numbers."""
    if number is None or not math.isfinite(number):
        return ()
    part = "whole" if number == int(number) else "fraction"
    regions = [part, *(["negative"] if number < 0 else [])] if number else ["zero"]
    return [*regions, type(number).__name__]


def untested_number_cases(prototype: Prototype, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield a case for each demand that neither the function's own `cases` nor the cases yielded before meet."""
    tested = list(cases)
    for demand in number_demands(prototype):
        if not demand.is_met(tested):
            suitable = (
                case
                for case in cases
                if case.dtype in demand.dtypes and _can_take_other_number(prototype, case, demand.name)
            )
            candidates = [_replace_number(case, demand) for case in sorted(suitable, key=_rarity)]
            defined = [case for case in candidates if not reason_open(prototype, case)]
            found = next(iter(defined or candidates), None)
            if found:
                tested.append(found)
                yield found


def _can_take_other_number(prototype: Prototype, case: Case, name: str) -> bool:
    """Return whether a case accepts any other number for a parameter, and its results would reveal it."""
    tensors = [spec for value in case.arguments.values() for spec in tensor_specs(value)]
    return (
        case.arguments[name] is not None
        and prototype.has_effect(name, case.arguments)
        and case.case_class is CaseClass.basic
        and not (case.exact or case.non_discriminating)
        and all(0 not in spec.shape for spec in tensors)
        and all(result is None or result.dtype is None for result in case.results.values())
    )


def _rarity(case: Case) -> tuple[bool, bool]:
    return case.dtype not in (Dtype.float32, Dtype.int32, Dtype.complex64), not case.smoke


def _replace_number(case: Case, demand: NumberDemand) -> Case:
    """Return the case with a number that meets the demand; bool with tensors of other types is a caller habit."""
    usual = NumberChoice("", (), demand.property, {**REGIONS, **KINDS}[demand.property])
    chosen = next((choice for choice in NUMBER_CHOICES if choice.suits(demand)), usual)
    return replace(
        case,
        label=f"{case.dtype.name}-{demand.property}-{demand.name}",
        arguments={**case.arguments, demand.name: chosen.number},
        smoke=False,
        non_discriminating=chosen.non_discriminating,
        case_class=CaseClass.callers if demand.property == "bool" and case.dtype is not Dtype.bool else case.case_class,
    )
