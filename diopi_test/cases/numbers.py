"""Calls with other numbers: every numeric attribute in each region of its range, and every scalar in each kind.

A call differs from one of the function's own cases in one number alone, and is made where no case of its own has such a
number. `demands` says what is to be tried, from the prototype and from `NOT_TAKEN`.
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
from diopi_test.cases.open_calls import why_open

REGIONS = {"zero": 0.0, "negative": -0.625, "whole": 1.0, "fraction": 0.375}
"""By region, the number that is tried where a function's own cases have none in it."""

KINDS = {"bool": True, "int": 2, "float": 1.75}
"""By kind of scalar, the same. In the order of the categories of element types."""


@dataclass(frozen=True)
class Demand:
    """That a number of a function is tried in a region, or as a scalar of a kind, in one of these element types."""

    function: str
    name: str
    what: str
    dtypes: Sequence[Dtype]

    def met(self, cases: Iterable[Case]) -> bool:
        """Whether one of a function's cases does so."""
        return any(case.dtype in self.dtypes and self.what in tried(case.arguments[self.name]) for case in cases)


@dataclass(frozen=True)
class NotTaken:
    """Regions and kinds in which functions take no number.

    Attributes:
        functions: a regular expression that is found in their names.
        names: of the numbers.
        what: the regions and kinds.
        reason: why not.
        categories: of the element types under test for which that holds.
    """

    functions: str
    names: Sequence[str]
    what: Sequence[str]
    reason: str
    categories: Sequence[int] = (0, 1, 2, 3)

    def holds(self, demand: Demand) -> bool:
        """Whether a demand is one that nothing has to meet."""
        return (
            demand.name in self.names
            and demand.what in self.what
            and category(demand.dtypes[0]) in self.categories
            and re.search(self.functions, demand.function) is not None
        )


NOT_NEGATIVE = "torch.optim refuses negative ones"

NOT_TAKEN = (
    NotTaken("Dropout|BernoulliScalar", ["p"], ["negative"], "a probability"),
    NotTaken("SigmoidFocalLoss", ["gamma"], ["negative"], "focal loss is defined for γ ≥ 0"),
    NotTaken("Nms", ["iou_threshold"], ["negative"], "no two boxes overlap less than not at all"),
    NotTaken("RoiAlign", ["spatial_scale"], ["zero", "negative"], "the size of a feature map, relative to an image's"),
    NotTaken("Sgd|Adam|Rmsprop|Adadelta", ["lr", "weight_decay", "eps"], ["negative"], NOT_NEGATIVE),
    NotTaken("Sgd|Rmsprop|Adadelta", ["momentum", "alpha", "rho"], ["negative"], NOT_NEGATIVE),
    NotTaken("Adam", ["beta1", "beta2"], ["negative", "whole"], "torch.optim takes them from 0 up to below 1"),
    NotTaken("ClipGradNorm|EmbeddingRenorm_", ["max_norm"], ["negative"], "no norm is negative"),
    NotTaken("Normal(Inp|TensorScalar)?$", ["std"], ["negative"], "torch.normal refuses it"),
    NotTaken("AmpUpdateScale", ["scale_growth_factor", "scale_backoff_factor"], ["zero", "negative"], "a scale is > 0"),
    NotTaken("Arange", ["step"], ["zero"], "a step leads on"),
    NotTaken("BatchNormElemt", ["eps"], ["zero", "negative"], "it has no part in the results"),
    NotTaken("CdistBackward", ["p"], ["negative"], "as in the forward function"),
    NotTaken("Foreachnorm", ["ord"], ["bool"], "torch._foreach_norm refuses it"),
    NotTaken("Bitwise", ["other"], ["fraction", "float"], "a floating scalar is rejected"),
    NotTaken("diopi(Add|Sub)(Inp)?(Scalar)?$", ["alpha"], ["float"], "torch.add refuses it for integers", (0, 1)),
    NotTaken("diopi(Add|Sub)(Inp)?(Scalar)?$", ["alpha"], ["bool"], "torch.add takes it for bool alone", (1, 2, 3)),
    NotTaken("diopiSub", ["other", "alpha"], ["bool"], "torch.sub refuses bool"),
    NotTaken("diopiRemainder", ["input", "other"], ["bool"], "torch.remainder refuses two bools", (0,)),
)


@dataclass(frozen=True)
class Chosen:
    """A number that functions try instead of the usual one of a region or kind, and why its case can't discriminate."""

    functions: str
    names: Sequence[str]
    what: str
    number: Any
    non_discriminating: str = ""

    def suits(self, demand: Demand) -> bool:
        """Whether a demand is met with it."""
        return (
            demand.name in self.names and demand.what == self.what and bool(re.search(self.functions, demand.function))
        )


FORGETFUL = "a state that decays to nothing at once has no part in what follows"

CHOSEN = (
    Chosen("Hardtanh|Clamp(Inp)?Scalar$", ["min_val", "min"], "bool", False),
    Chosen("ClampMin", ["min"], "bool", False),
    Chosen("BitwiseOr", ["other"], "bool", False),
    Chosen("LeakyRelu", ["negative_slope"], "bool", False),
    Chosen("PowScalar", ["input"], "bool", False),
    Chosen("(Le|Gt)(Inp)?Scalar", ["other"], "bool", False),
    Chosen("Foreachadd", ["other"], "int", 0),
    Chosen("Foreachadd", ["other"], "float", 0.0),
    Chosen("Sgd", ["dampening"], "whole", 2.0),
    Chosen("Lerp", ["weight"], "bool", True, "one end has all the weight"),
    Chosen("Adam|Adadelta", ["beta1", "beta2", "rho"], "zero", 0.0, FORGETFUL),
)


def is_ranged(prototype: Prototype) -> bool:
    """Whether the function is one of PyTorch's, whose numbers may be nearly any; extensions say themselves what is."""
    return header_of(prototype.name) == "functions.h"


def demands(prototype: Prototype, exceptions: Sequence[NotTaken] = NOT_TAKEN) -> Iterator[Demand]:
    """What is to be tried of a function's numbers, but for exceptions."""
    for parameter in prototype.arguments:
        if is_ranged(prototype) and issubclass(parameter.annotation, f64 | f32 | Scalar):
            every = (Demand(prototype.name, parameter.name, *what) for what in _to_try(prototype, parameter))
            yield from (one for one in every if not any(exception.holds(one) for exception in exceptions))


def _to_try(prototype: Prototype, parameter: Parameter) -> Iterator[tuple[str, Sequence[Dtype]]]:
    """Regions that no fact forbids; kinds that a tensor which is overwritten can hold, beside each category of tensors.

    Of factors, beside each element type.
    """
    positive = parameter.fact(facts.AtLeast) is not None
    yield from ((region, prototype.dtypes) for region in REGIONS if not (positive and region == "negative"))
    if issubclass(parameter.annotation, Scalar):
        is_factor = issubclass(parameter.annotation, Factor) or parameter.name in ("alpha", "beta")
        by_category = sorted(prototype.dtypes, key=category)
        groups = [(dtype,) for dtype in by_category] if is_factor else _of_each_category(by_category)
        for dtypes in groups:
            held = category(dtypes[0]) if prototype.is_inplace and not is_factor else 3
            yield from ((kind, dtypes) for number, kind in enumerate(KINDS) if number <= held)


def _of_each_category(dtypes: Sequence[Dtype]) -> list[tuple[Dtype, ...]]:
    return [tuple(group) for _, group in groupby(dtypes, key=category)]


def tried(number: Any) -> Collection[str]:
    """The regions and the kind of a number that a case has; none of what is missing or not finite."""
    if number is None or not math.isfinite(number):
        return ()
    part = "whole" if number == int(number) else "fraction"
    regions = [part, *(["negative"] if number < 0 else [])] if number else ["zero"]
    return [*regions, type(number).__name__]


def with_numbers_untried(prototype: Prototype, own: Sequence[Case]) -> Iterator[Case]:
    """A case for each demand that none of the function's `own` cases meets, nor one of those before."""
    cases = list(own)
    for demand in demands(prototype):
        if not demand.met(cases):
            usual = (case for case in own if case.dtype in demand.dtypes and _may_differ(prototype, case, demand.name))
            others = [_with_number(case, demand) for case in sorted(usual, key=_rarity)]
            served = [case for case in others if not why_open(prototype, case)]
            found = next(iter(served or others), None)
            if found:
                cases.append(found)
                yield found


def _may_differ(prototype: Prototype, case: Case, name: str) -> bool:
    """Whether a case can have any other number of this name, and shows it."""
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


def _with_number(case: Case, demand: Demand) -> Case:
    """The case with a number that meets the demand; truth values beside other tensors are a habit of callers."""
    usual = Chosen("", (), demand.what, {**REGIONS, **KINDS}[demand.what])
    chosen = next((choice for choice in CHOSEN if choice.suits(demand)), usual)
    return replace(
        case,
        label=f"{case.dtype.name}-{demand.what}-{demand.name}",
        arguments={**case.arguments, demand.name: chosen.number},
        smoke=False,
        non_discriminating=chosen.non_discriminating,
        case_class=CaseClass.callers if demand.what == "bool" and case.dtype is not Dtype.bool else case.case_class,
    )
