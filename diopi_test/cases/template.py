"""`CaseTemplate`: cases that differ only in their element type; `expand` makes one case per accepted element type.

Each family describes its cases as templates. If many templates derive their arguments in the same way, for example from
the sizes of a convolution, the family passes `expand` a function that does so.
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
    """The element types of a function for which a template makes cases."""

    leading = "leading"
    """float32, or the function's first type if the function does not accept float32."""
    one_per_size = "widths"
    """One type of each size."""
    all = "every"
    """All types of the function."""


SMOKE_IN_ALL_DTYPES: Mapping[str, Any] = {"dtypes": DtypeSelection.all, "smoke": True}
"""The attributes of a template of smoke cases in every element type."""

WIDTHS: DtypeSet = (Dtype.int8, Dtype.float16, Dtype.float32, Dtype.int64, Dtype.complex128)
"""One element type of each size."""


@dataclass(frozen=True)
class TensorTemplate:
    """A `TensorSpec` that has the element type under test, unless `dtype` sets another one."""

    shape: tuple[int, ...]
    domain: Domain = field(default_factory=normal)
    layout: Layout = contiguous
    dtype: Dtype | None = None
    compute: Callable[[Values], Any] | ResultOf | None = None

    def resolve(self, dtype: Dtype) -> TensorSpec:
        """Return the spec of the tensor for the element type under test, `dtype`."""
        resolved_dtype = dtype if self.dtype is None else self.dtype  # Dtype.int8 is 0, so `or` would not do
        return TensorSpec(self.shape, resolved_dtype, self.domain, self.layout, self.compute)


def tensor(*shape: int, domain: Domain | None = None, **attributes: Any) -> TensorTemplate:
    """Return a tensor template with these sizes; `attributes` are other fields of `TensorTemplate`."""
    return TensorTemplate(shape, domain or normal(), **attributes)


@dataclass(frozen=True)
class ByDtype:
    """An argument or a result override that depends on the element type under test.

    Attributes:
        resolve: Returns the value for an element type.
    """

    resolve: Callable[[Dtype], Any]


@dataclass(frozen=True)
class CaseTemplate:
    """Cases of one call, one case per element type.

    Attributes:
        label: The label of the cases without the element type.
        sizes: What the family derives arguments from: a shape, several shapes, or the sizes of a window.
        arguments: Arguments by name, as in `Case`, or as `TensorTemplate` or `ByDtype`. They replace derived arguments.
            If a derived form of the function lacks an argument, the argument is left out.
        domains: By tensor name, the domain to draw from instead of the default domain.
        layout: The layout of the tensor arguments that the family derives.
        result_layout: The layout of the results.
        results: By result name, a `ResultOverride`, a `ByDtype`, or None for an omitted result.
        dtypes: The element types. Types in a list that the function does not accept are skipped.
        smoke: Whether the cases are smoke cases (`Case.smoke`), or the element types in which they are.
        inplace: Whether in-place forms can be called this way, which requires a result of the first input's shape.
        exact, case_class, non_discriminating: As in `Case`.
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
        """Return a copy with changed attributes.

        Args:
            label: The new label; None keeps the label.
            arguments: Arguments to add to the arguments of this template, or to replace.
            changes: New values of attributes. If `sizes` is a dataclass, its fields can be named too.

        Returns:
            The new template.
        """
        new_label = self.label if label is None else label
        if changed := {name: changes.pop(name) for name in changes.keys() - {field.name for field in fields(self)}}:
            changes["sizes"] = replace(self.sizes, **changed)
        return replace(self, label=new_label, arguments={**self.arguments, **(arguments or {})}, **changes)

    def dtypes_for(self, prototype: Prototype) -> Sequence[Dtype]:
        """Return the element types in which the template makes cases of a function or form."""
        accepted = prototype.dtypes
        if self.dtypes is DtypeSelection.all:
            return accepted
        if self.dtypes is DtypeSelection.leading:
            return [leading_dtype(accepted)]
        candidates = WIDTHS if isinstance(self.dtypes, DtypeSelection) else self.dtypes
        return [dtype for dtype in candidates if dtype in accepted]


def same_layout(layout: Layout) -> dict[str, Any]:
    """Return the attributes of a template whose derived arguments and results all have `layout`."""
    return {"layout": layout, "result_layout": layout}


def cycle_layouts(templates: Iterable[CaseTemplate], *layout_pairs: tuple[Layout, Layout]) -> list[CaseTemplate]:
    """Return the templates with these pairs of argument layout and result layout, assigned in rotation."""
    return [
        template.replace(layout=argument_layout, result_layout=result_layout)
        for template, (argument_layout, result_layout) in zip(templates, cycle(layout_pairs), strict=False)
    ]


def leading_dtype(dtypes: Sequence[Dtype]) -> Dtype:
    """Return the element type that represents all of `dtypes`: float32, or the first type without float32."""
    return Dtype.float32 if Dtype.float32 in dtypes else dtypes[0]


Derive = Callable[[CaseTemplate, Dtype], Mapping[str, Any]]
"""Returns arguments by name for a template and the element type under test."""


def _derive_nothing(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    return {}


def expand(prototype: Prototype, templates: Iterable[CaseTemplate], derive: Derive = _derive_nothing) -> Iterator[Case]:
    """Yield the cases of all templates; `derive` computes the arguments that a template does not name."""
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
    """Register the cases of these templates for functions and the forms derived from them.

    Args:
        names: The functions.
        templates: The templates of the cases.
        derive: Computes the arguments that a template does not name.
        non_discriminating: Passed to `cases_for`.
        level: The level of the baseline that has these cases.
    """
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
    """Return an argument for the element type under test, with `domain` as the domain of its tensors if not None."""
    if isinstance(value, list):
        return [_resolve(entry, dtype, domain) for entry in value]
    resolved = value.resolve(dtype) if isinstance(value, TensorTemplate | ByDtype) else value
    return replace(resolved, domain=domain) if domain is not None and isinstance(resolved, TensorSpec) else resolved
