"""Templates of cases: a `CaseTemplate` describes cases of a function that differ only in their element type.

`expand` yields one case per template and element type. Each family of functions lists its templates. If the arguments
of many templates follow from sizes in the same way, as those of a convolution, the family also has a function that
derives the arguments from a template.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum
from functools import cache
from itertools import cycle
from typing import Any, Generic, Self, TypedDict, Unpack, cast

from typing_extensions import TypeVar

from diopi_proto.dtypes import DtypeSet, leading_dtype
from diopi_proto.interface import prototypes
from diopi_proto.parameters import Role
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, CaseClass, ResultOf, ResultOverride, TensorSpec, Values, cases_for
from diopi_test.cases.domains import Domain, normal
from diopi_test.cases.layouts import Layout, contiguous


class DtypeSelection(Enum):
    """The element types of a function for which a template makes cases."""

    leading = "leading"
    """float32, or the function's first type if the function does not accept float32."""
    one_per_size = "widths"
    """One type of each size."""
    all = "every"
    """All types that the function accepts."""


WIDTHS: DtypeSet = (Dtype.int8, Dtype.float16, Dtype.float32, Dtype.int64, Dtype.complex128)
"""One element type of each size."""


@dataclass(frozen=True)
class TensorTemplate:
    """A `TensorSpec` without an element type: it has the type under test unless `dtype` is not None."""

    shape: tuple[int, ...]
    domain: Domain = field(default_factory=normal)
    layout: Layout = contiguous
    _: KW_ONLY
    dtype: Dtype | None = None
    compute: Callable[[Values], Any] | ResultOf | None = None

    def resolve(self, dtype: Dtype) -> TensorSpec:
        """Return the spec of the tensor for the element type under test, `dtype`."""
        resolved_dtype = dtype if self.dtype is None else self.dtype  # Dtype.int8 is 0, so `or` would not do
        return TensorSpec(self.shape, resolved_dtype, self.domain, layout=self.layout, compute=self.compute)


def tensor(*shape: int, domain: Domain | None = None, **attributes: Any) -> TensorTemplate:
    """Return a tensor template of the shape `shape`.

    Args:
        *shape: The sizes: `tensor(3, 4)` describes a matrix.
        domain: The domain of the values; None for the standard normal distribution.
        **attributes: Other fields of `TensorTemplate`.

    Returns:
        The tensor template.
    """
    return TensorTemplate(shape, domain or normal(), **attributes)


@dataclass(frozen=True)
class ByDtype:
    """An argument or a result override that depends on the element type under test.

    Attributes:
        resolve: Returns the value for an element type.
    """

    resolve: Callable[[Dtype], Any]


Argument = (
    TensorTemplate
    | TensorSpec
    | ByDtype
    | complex
    | str
    | Enum
    | range
    | Sequence[complex]
    | Sequence[TensorTemplate | TensorSpec | None]
    | None
)
"""An argument of a template: a tensor, a list of tensors, an attribute, a `ByDtype`, or None if it is omitted."""

Arguments = Mapping[str, Argument]
"""Arguments by name."""

Sizes = TypeVar("Sizes", default=tuple[()])
"""The type of the sizes of a template."""

Sizes_co = TypeVar("Sizes_co", default=tuple[()], covariant=True)
"""The type of the sizes of a `CaseTemplate`."""


class TemplateFields(TypedDict, total=False):
    """The fields of `CaseTemplate` besides label, sizes and arguments, for functions that pass them on."""

    domains: Mapping[str, Domain]
    layout: Layout
    result_layout: Layout
    results: Mapping[str, ResultOverride | ByDtype | None]
    dtypes: DtypeSelection | Sequence[Dtype]
    smoke: bool | Collection[Dtype]
    exact: bool | Collection[str]
    inplace: bool
    case_class: CaseClass
    non_discriminating: str
    large: bool


SMOKE_IN_ALL_DTYPES: Mapping[str, Any] = {"dtypes": DtypeSelection.all, "smoke": True}
"""The fields of a template of smoke cases in every element type."""


@dataclass(frozen=True)
class CaseTemplate(Generic[Sizes_co]):
    """The description of cases that differ only in their element type.

    Attributes:
        label: The label of the cases without the element type: "rows" for the case "float32-rows".
        sizes: The object from which the family derives arguments, such as a shape, several shapes, or the sizes of a
            window.
        arguments: Arguments by name, as in `Case`, or as `TensorTemplate` or `ByDtype`. They replace derived arguments.
            Arguments that a function or form does not have are left out.
        domains: By argument name, a domain that replaces the domain of the tensor or of each tensor in a list.
        layout: The layout of the tensor arguments that the family derives.
        result_layout: The layout of the results.
        results: By result name, a `ResultOverride`, a `ByDtype`, or None for an omitted result. Other results have the
            layout `result_layout`.
        dtypes: The element types. Types in a list that the function does not accept are skipped.
        smoke: Whether the cases are smoke cases (`Case.smoke`), or the element types of the smoke cases.
        inplace: Whether the template also describes cases of in-place forms. The result must then have the shape of the
            first input.
        exact, case_class, non_discriminating, large: As in `Case`.
    """

    label: str
    sizes: Sizes_co = field(default=cast("Any", ()))
    arguments: Arguments = field(default_factory=dict)
    _: KW_ONLY
    domains: Mapping[str, Domain] = field(default_factory=dict)
    layout: Layout = contiguous
    result_layout: Layout = contiguous
    results: Mapping[str, ResultOverride | ByDtype | None] = field(default_factory=dict)
    dtypes: DtypeSelection | Sequence[Dtype] = DtypeSelection.leading
    smoke: bool | Collection[Dtype] = False
    exact: bool | Collection[str] = False
    inplace: bool = True
    case_class: CaseClass = CaseClass.basic
    non_discriminating: str = ""
    large: bool = False

    def replace(
        self, label: str | None = None, /, arguments: Arguments | None = None, **changes: Unpack[TemplateFields]
    ) -> Self:
        """Return a copy with changed fields.

        Args:
            label: The new label; None keeps the label.
            arguments: Arguments that are added to those of this template, or replace arguments of the same names.
            changes: New values of fields.

        Returns:
            The new template.

        Raises:
            TypeError: A name in `changes` is `sizes` or not a field.
        """
        if "sizes" in changes:
            raise TypeError("replace does not change sizes, use with_sizes")
        new_label = self.label if label is None else label
        return dataclasses.replace(self, label=new_label, arguments={**self.arguments, **(arguments or {})}, **changes)

    def with_domains(
        self,
        domains: Mapping[str, Domain],
        label: str = "",
        arguments: Arguments | None = None,
        dtypes: DtypeSelection | Sequence[Dtype] | None = None,
        **changes: Any,
    ) -> Self:
        """Return a copy whose tensors are drawn from `domains`.

        Args:
            domains: Domains by argument name. They replace the field `domains` as a whole.
            label: The start of the label. A dash and the label of this template follow.
            arguments: Arguments that are added to those of this template, or replace arguments of the same names.
            dtypes: The element types; None for those of this template.
            changes: New values of other fields.

        Returns:
            The new template.
        """
        new_label = "-".join(filter(None, [label, self.label]))
        selected = self.dtypes if dtypes is None else dtypes
        return self.replace(new_label, arguments, dtypes=selected, domains=domains, **changes)

    def variants(
        self,
        domains: Mapping[str, Domain],
        arguments: Mapping[str, Arguments],
        dtypes: DtypeSelection | Sequence[Dtype] | None = None,
        **changes: Any,
    ) -> list[Self]:
        """Return one copy per entry of `arguments`.

        Args:
            domains: Domains by argument name, for all copies.
            arguments: The arguments of each copy, by the start of the copy's label.
            dtypes: The element types; None for those of this template.
            changes: New values of other fields.

        Returns:
            The new templates, as `with_domains` returns them.
        """
        return [self.with_domains(domains, label, values, dtypes, **changes) for label, values in arguments.items()]

    def to_dtype(self, dtype: Dtype) -> Self:
        """Return a copy whose result `out` has the type `dtype`, with the label `LABEL-into-DTYPE`.

        In-place forms have no cases of this template, because their result has the type of the first argument.
        """
        results = {"out": ResultOverride(dtype, self.result_layout)}
        return self.replace(f"{self.label}-into-{dtype.name}", results=results, inplace=False)

    def with_sizes(self, label: str | None = None, /, **changes: Any) -> Self:
        """Return a copy with changed fields of its sizes, which must be a dataclass.

        Args:
            label: The new label; None keeps the label.
            changes: New values of the fields of `sizes`.

        Returns:
            The new template.

        Raises:
            TypeError: A name is not a field of the sizes.
        """
        sizes = dataclasses.replace(cast("Any", self.sizes), **changes)
        return dataclasses.replace(self, label=self.label if label is None else label, sizes=sizes)

    def argument(self, name: str, default: Argument = None) -> Any:
        """Return the argument of this name, or `default` if the template has none."""
        return self.arguments.get(name, default)

    @staticmethod
    def cycle_layouts(
        templates: Iterable[CaseTemplate[Sizes]], *layout_pairs: tuple[Layout, Layout]
    ) -> list[CaseTemplate[Sizes]]:
        """Return copies of the templates with other layouts.

        Args:
            templates: The templates.
            layout_pairs: Pairs of `layout` and `result_layout`. The first template gets the first pair, the second
                template the second pair, and so on in rotation.

        Returns:
            The new templates.
        """
        return [
            template.replace(layout=argument_layout, result_layout=result_layout)
            for template, (argument_layout, result_layout) in zip(templates, cycle(layout_pairs), strict=False)
        ]

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
    """Return the fields `layout` and `result_layout` of a template, both with the value `layout`."""
    return {"layout": layout, "result_layout": layout}


Derive = Callable[[CaseTemplate[Sizes], Dtype], Mapping[str, Any]]
"""Returns arguments by name for a template and the element type under test."""


def expand(
    prototype: Prototype, templates: Iterable[CaseTemplate[Sizes]], derive: Derive[Sizes] | None = None
) -> Iterator[Case]:
    """Yield the cases of all templates.

    Args:
        prototype: The prototype of the function or form.
        templates: The templates. They may have arguments that only other functions of the family have.
        derive: Returns further arguments for a template and an element type. Arguments in the template take precedence.

    Yields:
        The cases, with those arguments that the function has, and with arguments whose names start with `_`.

    Raises:
        ValueError: A template names an argument or result that no function of the family has.
    """
    for template in templates:
        _check_names(prototype, template)
        if template.inplace or not prototype.is_inplace:
            for dtype in template.dtypes_for(prototype):
                derived = {} if derive is None else derive(template, dtype)
                yield _case(prototype, template, dtype, {**derived, **template.arguments})


def _check_names(prototype: Prototype, template: CaseTemplate[Any]) -> None:
    """Raise ValueError if the template names an argument or result that no function of the family has."""
    named = {name for name in (*template.arguments, *template.domains, *template.results) if not name.startswith("_")}
    if unknown := named - _parameter_names(prototype.family):
        raise ValueError(
            f"the template {template.label!r} of {prototype.name} names {', '.join(sorted(unknown))}, expected "
            f"parameters of functions of the family {prototype.family}"
        )


@cache
def _parameter_names(family: str) -> frozenset[str]:
    """Return the names of the parameters of all functions of a family."""
    functions = [prototype for prototype in prototypes().values() if prototype.family == family]
    return frozenset(parameter.name for function in functions for parameter in function.parameters)


def register(
    *names: str,
    templates: Sequence[CaseTemplate[Sizes]],
    derive: Derive[Sizes] | None = None,
    non_discriminating: Mapping[str, str] | None = None,
) -> None:
    """Register templates for functions and their forms, such as the in-place form.

    Args:
        names: The names of the functions.
        templates: The templates of the cases.
        derive: Returns further arguments for a template and an element type. Arguments in the template take precedence.
        non_discriminating: Reasons by a regular expression for labels, see `cases_for`.
    """
    cases_for(*names, non_discriminating=non_discriminating)(lambda prototype: expand(prototype, templates, derive))


def _case(prototype: Prototype, template: CaseTemplate[Any], dtype: Dtype, arguments: Mapping[str, Any]) -> Case:
    """Return the case of a template in one element type."""
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
        results={
            p.name: _resolve(template.results.get(p.name, usual), dtype, None)
            for p in prototype.results
            if p.role is Role.output
        },
        smoke=template.smoke if isinstance(template.smoke, bool) else dtype in template.smoke,
        exact=template.exact,
        case_class=template.case_class,
        non_discriminating=template.non_discriminating,
        large=template.large,
    )


def _resolve(value: Any, dtype: Dtype, domain: Domain | None) -> Any:
    """Return the argument or result override that a template's value describes for the element type under test.

    If `domain` is not None, it replaces the domain of each tensor.
    """
    if isinstance(value, list):
        return [_resolve(entry, dtype, domain) for entry in value]
    resolved = value.resolve(dtype) if isinstance(value, TensorTemplate | ByDtype) else value
    return (
        dataclasses.replace(resolved, domain=domain)
        if domain is not None and isinstance(resolved, TensorSpec)
        else resolved
    )
