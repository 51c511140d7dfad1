"""What the cases of functions of one tensor share: one way of calling the function, in one or all element types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from diopi_proto.parameters import Role
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.case import Case, ResultOverride, TensorSpec
from diopi_test.domains import Domain, anything
from diopi_test.layouts import Layout, contiguous

WIDTHS = (Dtype.int8, Dtype.float16, Dtype.float32, Dtype.int64, Dtype.complex128)
"""One element type of each size."""


@dataclass(frozen=True)
class Variant:
    """One way of calling a function of one tensor.

    Attributes:
        label: the part of the case's label after the element type.
        shape: of the input.
        attributes: the other arguments.
        layout, result: of the input and the result.
        target: shape of the result, where the caller decides it.
        everywhere: whether all element types get it, in the smoke level too; else float32 alone does.
        widths: whether an element type of each size gets it.
        domain: where the elements are drawn from.
    """

    label: str
    shape: tuple[int, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    layout: Layout = contiguous
    result: Layout = contiguous
    target: tuple[int, ...] | None = None
    everywhere: bool = False
    widths: bool = False
    domain: Domain = anything

    def case(self, prototype: Prototype, dtype: Dtype) -> Case:
        """The case in one element type."""
        tensor = next(p.name for p in prototype.arguments if p.is_tensor)
        return Case(
            f"{dtype.name}-{self.label}",
            dtype,
            {tensor: TensorSpec(self.shape, dtype, self.domain, self.layout), **self.attributes},
            {p.name: self.override for p in prototype.results if p.role is Role.output},
            smoke=self.everywhere,
        )

    @property
    def override(self) -> ResultOverride:
        """The result as the caller makes it."""
        return ResultOverride(layout=self.result, shape=self.target)


def variant_cases(prototype: Prototype, variants: Sequence[Variant]) -> Iterator[Case]:
    """The cases of all variants, in every element type each is for."""
    for dtype in prototype.dtypes:
        for variant in variants:
            if variant.everywhere or dtype is Dtype.float32 or (variant.widths and dtype in WIDTHS):
                yield variant.case(prototype, dtype)
