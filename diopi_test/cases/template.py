"""`CaseTemplate`: cases that differ only in their element type; `expand` makes one case per accepted element type.

Each family describes its cases as templates. If many templates derive their arguments in the same way, for example from
the sizes of a convolution, the family passes `expand` a function that does so.
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
    """All types of the function."""


WIDTHS: DtypeSet = (Dtype.int8, Dtype.float16, Dtype.float32, Dtype.int64, Dtype.complex128)
"""One element type of each size."""


@dataclass(frozen=True)
class TensorTemplate:
    """A `TensorSpec` that has the element type under test, unless `dtype` sets another one."""

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
    """Return a tensor template with these sizes; `attributes` are other fields of `TensorTemplate`."""
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
Sizes_co = TypeVar("Sizes_co", default=tuple[()], covariant=True)


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
            arguments: Arguments to add to the arguments of this template, or to replace.
            changes: New values of fields.

        Returns:
            The new template.

        Raises:
            TypeError: A name is not one of these fields.
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
            domains: Domains by argument name.
            label: The start of the label; the label of this template follows.
            arguments: Arguments to add to the arguments of this template, or to replace.
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
        """Return `with_domains` for each set in `arguments`, whose keys begin the labels."""
        return [self.with_domains(domains, label, values, dtypes, **changes) for label, values in arguments.items()]

    def to_dtype(self, dtype: Dtype) -> Self:
        """Return a copy with a result `out` of type `dtype`, which in-place forms do not have."""
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
        """Return the templates with these pairs of argument layout and result layout, assigned in rotation."""
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
    """Return the fields of a template whose derived arguments and results all have `layout`."""
    return {"layout": layout, "result_layout": layout}


Derive = Callable[[CaseTemplate[Sizes], Dtype], Mapping[str, Any]]
"""Returns arguments by name for a template and the element type under test."""


def expand(
    prototype: Prototype, templates: Iterable[CaseTemplate[Sizes]], derive: Derive[Sizes] | None = None
) -> Iterator[Case]:
    """Yield the cases of all templates.

    Args:
        prototype: The prototype of the function or form.
        templates: The templates. They may name arguments that only other functions of the family have.
        derive: Computes the arguments that a template does not name.

    Yields:
        The cases, with the arguments that the function has.

    Raises:
        ValueError: A template names an argument that no function of the family has.
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
    """Register the cases of these templates for functions and the forms derived from them.

    Args:
        names: The functions.
        templates: The templates of the cases.
        derive: Computes the arguments that a template does not name.
        non_discriminating: Passed to `cases_for`.
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
    """Return an argument for the element type under test, with `domain` as the domain of its tensors if not None."""
    if isinstance(value, list):
        return [_resolve(entry, dtype, domain) for entry in value]
    resolved = value.resolve(dtype) if isinstance(value, TensorTemplate | ByDtype) else value
    return (
        dataclasses.replace(resolved, domain=domain)
        if domain is not None and isinstance(resolved, TensorSpec)
        else resolved
    )
