"""What normalisation layers share: how their templates are made, the arguments they have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from diopi_proto.dtypes import floating, half
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain
from diopi_test.cases.layouts import Layout, contiguous
from diopi_test.cases.model import Case, Reasons, ResultOf, ResultOverride, cases_for
from diopi_test.cases.norm.values import EPS, SHIFTED
from diopi_test.cases.template import CaseTemplate, Derive, TensorTemplate, expand, tensor

F16, BF16, F32, F64 = floating


@dataclass(frozen=True)
class Layer:
    """Shape of a layer's input, and the element type of its parameters where that is not the input's."""

    shape: tuple[int, ...]
    parameters: Dtype | None = None


def layer(
    label: str,
    shape: tuple[int, ...],
    domain: Domain = SHIFTED,
    *,
    without: Sequence[str] = (),
    parameters: Dtype | None = None,
    layout: Layout = contiguous,
    dtypes: Sequence[Dtype] = (F32,),
    **attributes: Any,
) -> CaseTemplate[Any]:
    """Return a template of a normalization.

    Args:
        label: the label of the cases.
        shape: the shape of the input.
        domain: where the input is drawn from.
        without: optional arguments and results that are NULL.
        parameters: the element type of weight, bias and running statistics; by default the input's.
        layout: the layout of all tensor arguments and the first result.
        dtypes: the element types of the cases.
        **attributes: attributes that differ from the usual ones.

    Returns:
        The template.
    """
    overrides = {**attributes, **dict.fromkeys(without)}
    sizes = Layer(shape, parameters)
    return CaseTemplate(
        label,
        sizes,
        overrides,
        {"input": domain},
        layout,
        result_layout=layout,
        results=dict.fromkeys(without),
        dtypes=dtypes,
    )


def layers(
    *names: str, templates: Sequence[CaseTemplate[Any]], derive: Derive[Any], non_discriminating: Reasons | None = None
) -> None:
    """As `register`: all derived tensors have the template's layout, of the results the first."""

    def laid(template: CaseTemplate[Any], dtype: Dtype) -> Mapping[str, Any]:
        derived = derive(template, dtype).items()
        return {n: replace(v, layout=template.layout) if isinstance(v, TensorTemplate) else v for n, v in derived}

    @cases_for(*names, non_discriminating=non_discriminating)
    def cases(prototype: Prototype) -> Iterator[Case]:
        other_results = {p.name: ResultOverride() for p in prototype.results[1:]}
        return expand(prototype, (t.replace(results={**other_results, **t.results}) for t in templates), laid)


def common(template: CaseTemplate[Any], affine: Sequence[int]) -> dict[str, Any]:
    """The arguments all layers have; `affine` is the shape of weight and bias."""
    data = tensor(*template.sizes.shape, domain=SHIFTED)
    parameter = tensor(*affine, dtype=template.sizes.parameters)
    return {"eps": EPS, "grad_output": data, "input": data, "weight": parameter, "bias": parameter}


def found(
    template: CaseTemplate[Any], result: tuple[str, str], shape: Sequence[int], dtype: Dtype | None, **attributes: Any
) -> TensorTemplate:
    """A statistic as a forward function gives it, which no weight has a part in; `result` is (function, result)."""
    forward_arguments = {"eps": template.argument("eps", EPS), "weight": None, "bias": None, **attributes}
    return tensor(*shape, dtype=dtype, compute=ResultOf(*result, extra_arguments=forward_arguments))


def statistic(dtype: Dtype) -> Dtype:
    """The element type of statistics of tensors of `dtype`."""
    return F32 if dtype in half else dtype


NO_VARIANCE = {
    "equal-values": "where nothing varies, only eps counts, and 0 is scaled",
    "one-value|one-value-a-channel": "one value doesn't vary, and 0 is scaled; its unbiased variance is 0 / 0",
}
