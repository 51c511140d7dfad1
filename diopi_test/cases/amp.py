"""Cases of automatic mixed precision: gradients are unscaled, and the scale is updated.

A program multiplies the loss by a scale, so that small gradients do not underflow. Before each optimizer step, it
divides the gradients by the scale again. It reduces the scale if a gradient overflowed, and increases the scale after
`growth_interval` steps without overflow.

A template describes cases that differ only in their element type. A case is non-discriminating if an implementation
with a coarse error passes it. Such a case states the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from diopi_proto.dtypes import floating
from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, choice, log_uniform, normal
from diopi_test.cases.layouts import Layout, contiguous, strided, strides, transposed
from diopi_test.cases.template import (
    Arguments,
    CaseTemplate,
    DtypeSelection,
    TemplateFields,
    TensorTemplate,
    register,
    tensor,
)

F16, BF16, F32, F64 = floating
"""The four floating-point types: float16, bfloat16, float32 and float64."""


def single_element(value: float, shape: tuple[int, ...], dtype: Dtype | None = F32) -> TensorTemplate:
    """Return the template of a tensor with one element.

    Args:
        value: The element.
        shape: The shape: () or (1,).
        dtype: The element type; None for the type under test.

    Returns:
        The template.
    """
    return tensor(*shape, dtype=dtype, domain=choice([value]))


def _normal_with_last(value: float) -> Domain:
    """Return a domain of normally distributed gradients with the standard deviation 3, the last of which is `value`."""

    def draw(rng: Any, count: int, dtype: Dtype) -> Any:
        return np.where(np.arange(count) == count - 1, value, rng.normal(0, 3, count))

    return draw


FINITE_GRADIENTS = normal(3)
"""The domain of finite gradients: normally distributed with the standard deviation 3."""


def unscale_template(
    label: str,
    inv_scale: float = 0.125,
    shapes: Sequence[tuple[int, ...]] = ((3, 4), (5,), ()),
    domain: Domain = FINITE_GRADIENTS,
    *,
    special_domains: Mapping[int, Domain] | None = None,
    found_inf: float = 0.0,
    gradient_layout: Layout = contiguous,
    remaining_dtype: Dtype | None = None,
    state_shape: tuple[int, ...] = (1,),
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template of a call of `diopiAmpForeachNonFiniteCheckAndUnscaleInp`.

    The function multiplies each gradient in a list by `inv_scale`. It sets `found_inf` to 1 if an element of a gradient
    is infinite or NaN, and otherwise keeps its value.

    Args:
        label: The label of the cases without the element type.
        inv_scale: The factor by which the gradients are multiplied.
        shapes: The shapes of the gradients.
        domain: The domain of the gradients.
        special_domains: The domains of single gradients, which replace `domain`, by the position in the list.
        found_inf: The value of `found_inf` before the call.
        gradient_layout: The layout of the gradients.
        remaining_dtype: The element type of all gradients except the first; None for the type under test.
        state_shape: The shape of the tensors `found_inf` and `inv_scale`: () or (1,).
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    domains = {**dict.fromkeys(range(len(shapes)), domain), **(special_domains or {})}
    dtypes = [None, *[remaining_dtype] * len(shapes)]
    grads = [tensor(*s, domain=domains[i], layout=gradient_layout, dtype=dtypes[i]) for i, s in enumerate(shapes)]
    arguments: Arguments = {
        "scaled_grads": grads,
        "found_inf": single_element(found_inf, state_shape),
        "inv_scale": single_element(inv_scale, state_shape),
    }
    return CaseTemplate(label, arguments=arguments, **fields)


FOUND_INF_UNREAD_REASON = "an element is not finite, so found_inf becomes 1 whatever its value was"
"""The reason why a call that does not read the old value of `found_inf` passes cases with a non-finite gradient."""

TWO_SHAPES, MANY_SHAPES = ((3, 4), (2, 3, 2)), ((3,),) * 150
"""The shapes of the gradients in a list of 2 tensors, and in a list of 150 tensors."""

UNSCALE_TEMPLATES = (
    unscale_template("finite", dtypes=floating, smoke=True),
    unscale_template("finite-tenth", 0.1, state_shape=(), dtypes=floating),
    unscale_template(
        "infinite",
        special_domains={1: _normal_with_last(np.inf)},
        dtypes=floating,
        smoke=True,
        non_discriminating=FOUND_INF_UNREAD_REASON,
    ),
    unscale_template(
        "negative-infinite",
        special_domains={0: _normal_with_last(-np.inf)},
        dtypes=(F16, F32),
        non_discriminating=FOUND_INF_UNREAD_REASON,
    ),
    unscale_template(
        "nan-in-last",
        special_domains={2: _normal_with_last(np.nan)},
        dtypes=(BF16, F32),
        state_shape=(),
        non_discriminating=FOUND_INF_UNREAD_REASON,
    ),
    unscale_template("found-before", found_inf=1.0, dtypes=(F16, F32)),
    unscale_template(
        "found-twice",
        0.25,
        found_inf=1.0,
        special_domains={0: _normal_with_last(np.nan)},
        non_discriminating=FOUND_INF_UNREAD_REASON,
    ),
    unscale_template("overflowing-result", 4.0, special_domains={0: _normal_with_last(6e4)}, dtypes=(F16,)),
    unscale_template(
        "overflowing-result", 2.0**9, special_domains={0: _normal_with_last(2.0**120)}, dtypes=(BF16, F32)
    ),
    unscale_template("tiny-scale", 2.0**-16, domain=log_uniform(4, 14), dtypes=floating),
    unscale_template("strided", shapes=TWO_SHAPES, gradient_layout=strided, dtypes=floating),
    unscale_template("transposed", 0.3, TWO_SHAPES, gradient_layout=transposed, dtypes=(F32, BF16)),
    unscale_template("mixed", 0.3, remaining_dtype=F16),
    unscale_template("mixed-wide", 0.3, remaining_dtype=F64, dtypes=(BF16, F32)),
    unscale_template("one", shapes=((4, 5),), dtypes=(F16, F32)),
    unscale_template("with-empty", shapes=((2, 3), (0, 3), (4,))),
    unscale_template("no-gradients", shapes=()),
    unscale_template("no-gradients-found-before", shapes=(), found_inf=1.0, state_shape=()),
    unscale_template("long", 0.7, ((1031,), (7,)), dtypes=(F16, F32)),
    unscale_template("very-many", 0.3, MANY_SHAPES),
    unscale_template(
        "infinite-in-last-of-many",
        shapes=MANY_SHAPES,
        special_domains={149: _normal_with_last(np.inf)},
        non_discriminating=FOUND_INF_UNREAD_REASON,
    ),
    unscale_template(
        "infinite-at-the-end",
        shapes=((7,), (1031,)),
        special_domains={1: _normal_with_last(np.inf)},
        non_discriminating=FOUND_INF_UNREAD_REASON,
    ),
    unscale_template("model", shapes=((263, 257), (4097,), (1, 3, 1, 5)), large=True),
    unscale_template("half-far-apart", dtypes=(F16,), non_discriminating=FOUND_INF_UNREAD_REASON, large=True).replace(
        arguments={
            "scaled_grads": [
                tensor(509, domain=FINITE_GRADIENTS),
                tensor(131, 517, domain=_normal_with_last(np.inf), layout=strides(1031, 2)),
                tensor(3, 1031, domain=FINITE_GRADIENTS),
            ]
        }
    ),
)
"""The templates of `diopiAmpForeachNonFiniteCheckAndUnscaleInp`."""

register("diopiAmpForeachNonFiniteCheckAndUnscaleInp", templates=UNSCALE_TEMPLATES)


def update_template(
    label: str,
    scale: float = 1024.0,
    tracker: int = 3,
    found_inf: float = 0.0,
    *,
    growth: float = 2.0,
    backoff: float = 0.5,
    interval: int = 10,
    shape: tuple[int, ...] = (1,),
    **fields: Unpack[TemplateFields],
) -> CaseTemplate:
    """Return a template of a call of `diopiAmpUpdateScaleInp`, in every element type.

    The function reduces the scale after an overflow, and increases it after `interval` steps without overflow.

    Args:
        label: The label of the cases without the element type.
        scale: The scale before the call.
        tracker: The number of steps without overflow since the last change of the scale, before this step.
        found_inf: 1.0 if a gradient of this step overflowed, otherwise 0.0.
        growth: The factor by which the function multiplies the scale to increase it.
        backoff: The factor by which the function multiplies the scale after an overflow.
        interval: The number of steps without overflow after which the function increases the scale.
        shape: The shape of the tensors `current_scale`, `growth_tracker` and `found_inf`: () or (1,).
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    arguments: Arguments = {
        "current_scale": single_element(scale, shape, None),
        "growth_tracker": single_element(tracker, shape, Dtype.int32),
        "found_inf": single_element(found_inf, shape, None),
        "scale_growth_factor": growth,
        "scale_backoff_factor": backoff,
        "growth_interval": interval,
    }
    return CaseTemplate(label, arguments=arguments, **fields).replace(dtypes=DtypeSelection.all)


TRACKER_UNREAD_REASON = "after an overflow, the tracker becomes 0 whatever its value was"
"""The reason why a call that does not read the old value of `growth_tracker` passes cases with an overflow."""

UPDATE_TEMPLATES = (
    update_template("waits", smoke=True),
    update_template("grows", tracker=9, smoke=True),
    update_template("backs-off", found_inf=1.0, smoke=True, non_discriminating=TRACKER_UNREAD_REASON),
    update_template("almost-due", tracker=8),
    update_template("overdue", tracker=10),
    update_template("backs-off-when-due", tracker=9, found_inf=1.0, non_discriminating=TRACKER_UNREAD_REASON),
    update_template("grows-every-step", tracker=0, interval=1, growth=1.5),
    update_template("starts", tracker=0, shape=()),
    update_template("odd-growth", 1000.5, 4, interval=5, growth=1.7, shape=()),
    update_template("backs-off-by-nothing", found_inf=1.0, backoff=1.0, non_discriminating=TRACKER_UNREAD_REASON),
    update_template("odd-backoff", 1000.5, found_inf=1.0, backoff=0.3, shape=()),
    update_template("too-large-to-grow", 2.0**127, 9),
    update_template("as-large-as-can-be", 2.0**126, 9),
    update_template("fraction", 0.37, 1999, interval=2000),
)
"""The templates of `diopiAmpUpdateScaleInp`."""

register("diopiAmpUpdateScaleInp", templates=UPDATE_TEMPLATES)
