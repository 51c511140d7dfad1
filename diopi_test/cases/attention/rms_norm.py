"""Cases of the RMS norm and of its gradient.

The RMS norm divides each slice by its root mean square, multiplies it by a weight, and adds a bias. A slice consists of
the last axes of the input.

A template describes cases that differ only in their element type (`diopi_test.cases.template`). A domain draws the
values of a tensor (`diopi_test.cases.domains`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import Any, Unpack

from diopi_proto.dtypes import floating, half
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases import half_sums
from diopi_test.cases.attention.calls import BF16, F16, F32, F64, Shape
from diopi_test.cases.case import Case, ResultOf, ResultOverride, cases_for
from diopi_test.cases.domains import choice, integer_values, normal
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.template import (
    SMOKE_IN_ALL_DTYPES,
    CaseTemplate,
    DtypeSelection,
    TemplateFields,
    expand,
    same_layout,
    tensor,
)


@dataclass(frozen=True)
class NormSizes:
    """The sizes of a template of the RMS norm.

    Attributes:
        shape: The shape of the input.
        axis_count: The number of axes, counted from the last one, that a slice consists of.
        parameter_dtype: The element type of weight and bias; None for the type under test.
    """

    shape: Shape
    axis_count: int = 1
    parameter_dtype: Dtype | None = None


BIAS_NAMES = ("bias", "grad_bias")
"""The names of the argument and the result that are NULL in a call without bias."""

PARAMETER_NAMES = (*BIAS_NAMES, "weight", "grad_weight")
"""The names of the arguments and results that are NULL in a call without weight and bias."""


def rms_norm_template(
    label: str,
    shape: Shape,
    axis_count: int = 1,
    *,
    eps: float = 1e-2,
    parameter_dtype: Dtype | None = None,
    null_names: Sequence[str] = (),
    **fields: Unpack[TemplateFields],
) -> CaseTemplate[NormSizes]:
    """Return a template of the RMS norm or its gradient.

    Args:
        label: The label of the cases without the element type.
        shape: The shape of the input.
        axis_count: The number of axes, counted from the last one, that are normalized together.
        eps: The number that is added to the mean of the squares.
        parameter_dtype: The element type of weight and bias; None for the type under test.
        null_names: The names of the arguments and results that are NULL.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    arguments = {"eps": eps, **{name: None for name in ("bias", "weight") if name in null_names}}
    results = {name: None for name in null_names if name.startswith("grad")}
    template = CaseTemplate(label, NormSizes(shape, axis_count, parameter_dtype), arguments, **fields)
    return template.replace(results=results)


def rms_norm_arguments(template: CaseTemplate[NormSizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiRMSNorm` and `diopiRMSNormBackward` for the sizes of a template.

    `inv_rms` is an argument of the gradient only. It is the result of `diopiRMSNorm`, which the reference computes.

    Args:
        template: The template. Its layout applies to all tensors.
        dtype: The element type under test.

    Returns:
        The arguments of both functions, by name.
    """
    sizes, layout = template.sizes, template.layout
    first_axis = len(sizes.shape) - sizes.axis_count
    parameter = tensor(*sizes.shape[first_axis:], dtype=sizes.parameter_dtype, layout=layout)
    statistic_dtype = F32 if dtype in half else dtype
    inv_rms = tensor(
        *sizes.shape[:first_axis],
        dtype=statistic_dtype,
        layout=layout,
        compute=ResultOf("diopiRMSNorm", "inv_rms", extra_arguments={"weight": None, "bias": None}),
    )
    return {
        "grad_output": tensor(*sizes.shape, layout=layout),
        "input": tensor(*sizes.shape, layout=layout),
        "normalized_shape": sizes.shape[first_axis:],
        "weight": parameter,
        "bias": parameter,
        "eps": 1e-2,
        "inv_rms": inv_rms,
    }


SHARED_TEMPLATES = (
    rms_norm_template("", (3, 8), **SMOKE_IN_ALL_DTYPES),
    rms_norm_template("no-bias", (3, 8), null_names=BIAS_NAMES, dtypes=DtypeSelection.all, smoke=True),
    rms_norm_template("no-weight", (4, 6), null_names=PARAMETER_NAMES, dtypes=DtypeSelection.all),
    rms_norm_template("no-weight-one-axis", (3, 4, 5), null_names=PARAMETER_NAMES),
    rms_norm_template("no-weight-two-axes", (3, 4, 5), 2, null_names=PARAMETER_NAMES),
    rms_norm_template("batch", (2, 3, 12), dtypes=(F16, F32)),
    rms_norm_template("two-axes", (3, 4, 5), 2, dtypes=DtypeSelection.all),
    rms_norm_template("all-axes", (4, 5), 2),
    rms_norm_template("vector", (9,)),
    rms_norm_template("long", (2, 1031), dtypes=floating),
    rms_norm_template("many-rows", (517, 3)),
    rms_norm_template("default-eps", (3, 8), eps=1e-6),
    rms_norm_template("small", (4, 8), eps=1e-2, domains={"input": normal(1e-2)}),
    rms_norm_template("float32-weight", (3, 8), parameter_dtype=F32, dtypes=half),
    rms_norm_template("float32-weight-no-bias", (3, 8), null_names=BIAS_NAMES, parameter_dtype=F32, dtypes=half),
    rms_norm_template("transposed", (4, 6), **same_layout(transposed)),
    rms_norm_template("strided", (3, 2, 4), **same_layout(strided), dtypes=DtypeSelection.all),
    rms_norm_template("no-rows", (0, 5)),
    rms_norm_template("far-from-0", (3, 16), domains={"input": normal(1, 50)}),
    rms_norm_template("rows", (257, 4099), large=True),
    rms_norm_template("many-rows", (70_001, 3), large=True),
    rms_norm_template("half", (3, 131, 517), dtypes=[BF16], large=True),
)
"""The templates that `diopiRMSNorm` and `diopiRMSNormBackward` share."""

EQUAL_MAGNITUDES = choice([2.0, -2.0])
"""A domain of 2 and −2: the root mean square of a slice is exactly 2."""

SINGLE_VALUE_REASONS = {
    "special": "the result depends only on the element that is not finite",
    "exact": "all elements are equal, so the root mean square equals their absolute value",
}
"""The reasons why an implementation with a coarse error can pass a case, by label (`Case.non_discriminating`)."""


def _register_norm_cases(name: str, *templates: CaseTemplate[NormSizes]) -> None:
    """Register the cases of a function.

    Args:
        name: The function: `diopiRMSNorm` or `diopiRMSNormBackward`.
        *templates: The templates that only this function has, in addition to `SHARED_TEMPLATES`.
    """

    @cases_for(name, non_discriminating=SINGLE_VALUE_REASONS)
    def cases(prototype: Prototype) -> Iterator[Case]:
        """Return the cases. Only the first result has the result layout of the template; the others are contiguous.

        The float16 and bfloat16 cases of the gradient get data that show in which type the gradient of the bias is
        accumulated (`half_sums`).
        """
        contiguous_results = {p.name: ResultOverride() for p in prototype.results[1:]}
        function_templates = (
            template.replace(results={**contiguous_results, **template.results})
            for template in (*SHARED_TEMPLATES, *templates)
        )
        all_cases = expand(prototype, function_templates, rms_norm_arguments)
        return half_sums.reveal_half_gradients(all_cases) if "grad_bias" in contiguous_results else all_cases


_register_norm_cases(
    "diopiRMSNorm",
    rms_norm_template("special", (19, 4), domains={"input": choice([inf, 1.0, nan, -inf, 0.0, -2.0, 3.0])}),
    rms_norm_template("zeros", (3, 4), domains={"input": choice([0.0, 0.0, 1.0])}),
    rms_norm_template(
        "exact",
        (6, 16),
        eps=0.0,
        domains={"input": EQUAL_MAGNITUDES, "weight": integer_values(-8, 8), "bias": integer_values(-8, 8)},
        exact=True,
    ),
)
_register_norm_cases(
    "diopiRMSNormBackward",
    rms_norm_template("no-gradient-of-bias", (3, 8), null_names=("grad_bias",)),
    rms_norm_template("exact", (5, 16), dtypes=DtypeSelection.all, exact=True).replace(
        domains=dict.fromkeys(("grad_output", "input", "weight"), integer_values(-4, 4)),
        arguments={"inv_rms": tensor(5, domain=choice([0.5, 1.0, 2.0]), dtype=None)},
        dtypes=(F32, F64),
    ),
    rms_norm_template("special", (12, 4), domains={"grad_output": choice([1.0, nan, 2.0, -3.0, 0.5, inf, 1.5])}),
)

CaseFacts(saved={"inv_rms": ResultOf("diopiRMSNorm", "inv_rms")}).declare("diopiRMSNormBackward")
