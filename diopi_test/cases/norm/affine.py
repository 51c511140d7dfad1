"""Create templates and arguments of normalization layers, and register the cases.

A template describes cases that differ only in their element type.

A domain draws the values of a tensor (`diopi_test.cases.domains`). `Case.non_discriminating` is the reason why a wrong
result can pass a case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from diopi_proto.dtypes import floating, half
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases import half_sums
from diopi_test.cases.case import Case, ResultOf, ResultOverride, cases_for
from diopi_test.cases.domains import Domain
from diopi_test.cases.layouts import Layout, contiguous
from diopi_test.cases.norm.values import EPS, SHIFTED
from diopi_test.cases.template import CaseTemplate, Derive, TensorTemplate, expand, tensor

F16, BF16, F32, F64 = floating
"""Short names for the floating-point types."""


@dataclass(frozen=True)
class LayerSizes:
    """The sizes of a normalization layer.

    Attributes:
        shape: The shape of the input.
        parameter_dtype: The element type of weight, bias and running statistics; None for the type of the input.
    """

    shape: tuple[int, ...]
    parameter_dtype: Dtype | None = None


def layer_template(
    label: str,
    shape: tuple[int, ...],
    domain: Domain = SHIFTED,
    *,
    omitted_names: Sequence[str] = (),
    parameter_dtype: Dtype | None = None,
    layout: Layout = contiguous,
    dtypes: Sequence[Dtype] = (F32,),
    large: bool = False,
    **attributes: float | TensorTemplate,
) -> CaseTemplate[LayerSizes]:
    """Return a template of a normalization layer.

    Args:
        label: The label of the cases without the element type.
        shape: The shape of the input.
        domain: The domain of the input.
        omitted_names: The names of optional arguments and results to omit (pass as NULL).
        parameter_dtype: The element type of weight, bias and running statistics; None for the element type of the
            input.
        layout: The layout of derived tensor arguments and of results.
        dtypes: The element types of the cases.
        large: Whether the cases are large.
        **attributes: Arguments that differ from the default: numbers or tensor templates.

    Returns:
        The template.
    """
    return CaseTemplate(
        label,
        LayerSizes(shape, parameter_dtype),
        {**attributes, **dict.fromkeys(omitted_names)},
        domains={"input": domain},
        layout=layout,
        result_layout=layout,
        results=dict.fromkeys(omitted_names),
        dtypes=dtypes,
        large=large,
    )


def register_layers(
    *names: str,
    templates: Sequence[CaseTemplate[LayerSizes]],
    derive: Derive[LayerSizes],
    non_discriminating: Mapping[str, str] | None = None,
) -> None:
    """Register the cases of templates for functions.

    All derived tensor arguments and the first result have the layout of the template. Other results are contiguous
    unless the template overrides them.

    Args:
        *names: The names of the functions.
        templates: The templates.
        derive: Returns the arguments for a template and an element type.
        non_discriminating: By label, the reason why wrong results can pass a case.
    """

    def derive_with_layout(template: CaseTemplate[LayerSizes], dtype: Dtype) -> Mapping[str, Any]:
        """Return the derived arguments, with the layout of the template for all tensors."""
        derived = derive(template, dtype).items()
        return {
            name: replace(value, layout=template.layout) if isinstance(value, TensorTemplate) else value
            for name, value in derived
        }

    @cases_for(*names, non_discriminating=non_discriminating)
    def cases(prototype: Prototype) -> Iterator[Case]:
        """Return a function's cases; half-precision gradients of layer norm get inputs that reveal inaccurate sums."""
        other_results = {p.name: ResultOverride() for p in prototype.results[1:]}
        all_cases = expand(
            prototype,
            (template.replace(results={**other_results, **template.results}) for template in templates),
            derive_with_layout,
        )
        return (
            half_sums.reveal_half_gradients(all_cases)
            if "LayerNorm" in prototype.name and "grad_bias" in other_results
            else all_cases
        )


def shared_arguments(template: CaseTemplate[LayerSizes], affine: Sequence[int]) -> dict[str, Any]:
    """Return the arguments that all layers share, by name.

    Args:
        template: The template, which provides the shape of the input and the element type of the parameters.
        affine: The shape of weight and bias.

    Returns:
        The arguments eps, grad_output, input, weight and bias.
    """
    data = tensor(*template.sizes.shape, domain=SHIFTED)
    parameter = tensor(*affine, dtype=template.sizes.parameter_dtype)
    return {"eps": EPS, "grad_output": data, "input": data, "weight": parameter, "bias": parameter}


def forward_statistic(
    template: CaseTemplate[LayerSizes],
    result: tuple[str, str],
    shape: Sequence[int],
    dtype: Dtype | None,
    **attributes: Any,
) -> TensorTemplate:
    """Return an argument that the reference computes with a forward function, without weight and bias.

    Args:
        template: The template of the case, which provides eps.
        result: The name of the forward function, and the name of its result.
        shape: The shape of the statistic.
        dtype: The element type of the statistic; None for the element type of the case.
        **attributes: Further arguments of the forward function.

    Returns:
        The tensor template of the argument.
    """
    forward_arguments = {"eps": template.argument("eps", EPS), "weight": None, "bias": None, **attributes}
    return tensor(*shape, dtype=dtype, compute=ResultOf(*result, extra_arguments=forward_arguments))


def statistic_dtype(dtype: Dtype) -> Dtype:
    """Return the element type of the statistics of a tensor: float32 if `dtype` has half precision, else `dtype`."""
    return F32 if dtype in half else dtype


NO_VARIANCE_REASONS = {
    "equal-values": "all values are equal, so the variance is 0 and the normalized values are 0",
    "one-value|one-value-a-channel": "one value is the mean; its normalized value is 0, its unbiased variance 0 / 0",
}
"""Why wrong kernels can pass some cases (`Case.non_discriminating`), by label; `|` separates labels.

In these cases, all values of a statistic are equal. The normalized values are then 0, whatever the variance is.
"""
