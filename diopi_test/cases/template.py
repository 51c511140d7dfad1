"""`CaseTemplate`: cases that differ in their element type alone; `expand` makes them for the types a function takes.

A family writes its cases as templates. Where many templates derive their arguments in one way, from the sizes of a
convolution say, it passes `expand` a function that does so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from itertools import cycle
from typing import Any

from diopi_proto.dtypes import DtypeSet
from diopi_proto.parameters import Role
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, normal
from diopi_test.cases.layouts import Layout, contiguous
from diopi_test.cases.model import (
    FULL,
    Case,
    CaseClass,
    Reasons,
    ResultOf,
    ResultOverride,
    TensorSpec,
    Values,
    cases_for,
)


class DtypeSelection(Enum):
    """Which of a function's element types a template is for."""

    leading = "leading"
    """float32, or the function's first type if it does not take that."""
    one_per_size = "widths"
    """One type of each size."""
    all = "every"
    """All of them."""


SMOKE_IN_ALL_DTYPES: Mapping[str, Any] = {"dtypes": DtypeSelection.all, "smoke": True}
"""The attributes of a template of basic cases in every element type."""

WIDTHS: DtypeSet = (Dtype.int8, Dtype.float16, Dtype.float32, Dtype.int64, Dtype.complex128)
"""One element type of each size."""


@dataclass(frozen=True)
class TensorTemplate:
    """A `TensorSpec` whose element type, unless `dtype` says it, is the one under test."""

    shape: tuple[int, ...]
    domain: Domain = field(default_factory=normal)
    layout: Layout = contiguous
    dtype: Dtype | None = None
    compute: Callable[[Values], Any] | ResultOf | None = None

    def of(self, dtype: Dtype) -> TensorSpec:
        """The tensor when `dtype` is under test."""
        own = dtype if self.dtype is None else self.dtype  # int8 is 0
        return TensorSpec(self.shape, own, self.domain, self.layout, self.compute)


def tensor(*shape: int, domain: Domain | None = None, **attributes: Any) -> TensorTemplate:
    """A tensor of these sizes; `about` are the other attributes of `TensorTemplate`."""
    return TensorTemplate(shape, domain or normal(), **attributes)


@dataclass(frozen=True)
class ByDtype:
    """An argument, or a result's override, that depends on the element type under test."""

    of: Callable[[Dtype], Any]


@dataclass(frozen=True)
class CaseTemplate:
    """Cases of one call, one for each of several element types.

    Attributes:
        label: of the cases, after the element type.
        sizes: what a family derives arguments from: a shape, several, or the sizes of a window.
        arguments: by name, as in `Case`, or `TensorTemplate` and `ByDtype`; they replace derived ones. Those that a
            derived form of the function has not got are left out.
        domains: where the tensors of these names are drawn from, instead of what is usual.
        layout: of the tensor arguments a family derives.
        result_layout: The layout of the results.
        results: `ResultOverride` of single results, or `ByDtype`; None for one that is left out.
        dtypes: the element types; of those listed, the ones the function takes.
        smoke: whether the cases are basic ones (`Case.smoke`), or in which element types they are.
        inplace: whether in-place forms can be called so: the result has the first input's shape.
        exact, case_class, non_discriminating: as in `Case`.
    """

    label: str
    sizes: Any = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    domains: Mapping[str, Domain] = field(default_factory=dict)
    layout: Layout = contiguous
    result_layout: Layout = contiguous
    results: Mapping[str, Any] = field(default_factory=dict)
    dtypes: DtypeSelection | Sequence[Dtype] = DtypeSelection.leading
    smoke: bool | Collection[Dtype] = False
    exact: bool | Collection[str] = False
    inplace: bool = True
    case_class: CaseClass = CaseClass.basic
    non_discriminating: str = ""

    def replace(
        self, label: str | None = None, /, arguments: Mapping[str, Any] | None = None, **changes: Any
    ) -> CaseTemplate:
        """Another template: this one with some attributes changed, and `arguments` added to its own.

        Where `sizes` are a dataclass, its attributes can be changed too.
        """
        own = self.label if label is None else label
        if changed := {name: changes.pop(name) for name in changes.keys() - {field.name for field in fields(self)}}:
            changes["sizes"] = replace(self.sizes, **changed)
        return replace(self, label=own, arguments={**self.arguments, **(arguments or {})}, **changes)

    def dtypes_for(self, prototype: Prototype) -> Sequence[Dtype]:
        """The element types of its cases for a function or form."""
        taken = prototype.dtypes
        if self.dtypes is DtypeSelection.all:
            return taken
        if self.dtypes is DtypeSelection.leading:
            return [leading_dtype(taken)]
        listed = WIDTHS if isinstance(self.dtypes, DtypeSelection) else self.dtypes
        return [dtype for dtype in listed if dtype in taken]


def same_layout(layout: Layout) -> dict[str, Any]:
    """The attributes of a template whose arguments and results lie in one way."""
    return {"layout": layout, "result_layout": layout}


def cycle_layouts(templates: Iterable[CaseTemplate], *places: tuple[Layout, Layout]) -> list[CaseTemplate]:
    """The templates with these layouts of arguments and result, one pair after the other."""
    return [
        template.replace(layout=given, result_layout=made)
        for template, (given, made) in zip(templates, cycle(places), strict=False)
    ]


def leading_dtype(dtypes: Sequence[Dtype]) -> Dtype:
    """The element type that stands for all: float32, or the first where that is not among them."""
    return Dtype.float32 if Dtype.float32 in dtypes else dtypes[0]


Derive = Callable[[CaseTemplate, Dtype], Mapping[str, Any]]
"""From a template and the element type under test to arguments by name."""


def _derive_nothing(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    return {}


def expand(prototype: Prototype, templates: Iterable[CaseTemplate], derive: Derive = _derive_nothing) -> Iterator[Case]:
    """The cases of all templates; `derive` makes the arguments that a template does not name."""
    for template in templates:
        if template.inplace or not prototype.is_inplace:
            for dtype in template.dtypes_for(prototype):
                yield _case(prototype, template, dtype, {**derive(template, dtype), **template.arguments})


def register(
    *names: str,
    templates: Sequence[CaseTemplate],
    derive: Derive = _derive_nothing,
    non_discriminating: Reasons | None = None,
    level: str = FULL,
) -> None:
    """Make these templates the cases of these functions, and of their forms, as `cases_for` does with a maker."""
    cases_for(*names, non_discriminating=non_discriminating, level=level)(
        lambda prototype: expand(prototype, templates, derive)
    )


def _case(prototype: Prototype, template: CaseTemplate, dtype: Dtype, arguments: Mapping[str, Any]) -> Case:
    names = {parameter.name for parameter in prototype.arguments}
    usual = ResultOverride(layout=template.result_layout)
    return Case(
        f"{dtype.name}-{template.label}" if template.label else dtype.name,
        dtype,
        {
            name: _resolve(value, dtype, template.domains.get(name))
            for name, value in arguments.items()
            if name in names or name.startswith("_")
        },
        {
            p.name: _resolve(template.results.get(p.name, usual), dtype, None)
            for p in prototype.results
            if p.role is Role.output
        },
        smoke=template.smoke if isinstance(template.smoke, bool) else dtype in template.smoke,
        exact=template.exact,
        case_class=template.case_class,
        non_discriminating=template.non_discriminating,
    )


def _resolve(value: Any, dtype: Dtype, domain: Domain | None) -> Any:
    """An argument when `dtype` is under test, drawn from `domain` if there is one."""
    if isinstance(value, list):
        return [_resolve(entry, dtype, domain) for entry in value]
    given = value.of(dtype) if isinstance(value, TensorTemplate | ByDtype) else value
    return replace(given, domain=domain) if domain is not None and isinstance(given, TensorSpec) else given
