"""Cases of the setup of sampling, which determines consistent values of k and p for each sequence.

`diopi_test.cases.lmdeploy.sampling` explains k and p. A template describes cases that differ only in their element type
(`diopi_test.cases.template`).

`Case.non_discriminating` is the reason why a wrong result can pass a case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diopi_test.cases.domains import choice
from diopi_test.cases.layouts import Layout, contiguous, strided
from diopi_test.cases.lmdeploy.arguments import F32, I32, I64, MANY_ROWS
from diopi_test.cases.template import CaseTemplate, DtypeSelection, register, tensor

K_VALUES = (0, 3, 0, 5, 1, 2000, 1024, 1025, 0, 7, 1023, 40, 0)
"""Values of k: 0, which means that no k is set, usual values, and values near and above the maximum of 1024."""

P_VALUES = (0.5, 0.25, 0.0, 0.0, 1.0, 1.5, -0.25, 0.75, 1.25, 0.875, 0.0, -1.0)
"""Values of p: 0, which means that no p is set, usual values, and values outside [0, 1].

A tensor of 40 sequences contains every value of k and of p at least three times, at independent random positions. The
cases of a function together contain every combination that the call treats differently; a test verifies it.
"""

BUFFER_ARGUMENTS: Mapping[str, Any] = {"top_p_decay": 0.75, "top_p_min": 0.25, "top_p_reset_ids": 11}
"""The arguments with which `diopiSetupToppRuntimeArgsInp` fills its buffers."""


def per_sequence_template(
    label: str, batch: int = 40, k_values: Sequence[int] = K_VALUES, layout: Layout = contiguous, **fields: Any
) -> CaseTemplate:
    """Return a template with one k and one p per sequence.

    The arguments `top_k` and `top_p`, which apply to all sequences in other calls, have values that the call must
    ignore.

    Args:
        label: The label of the cases without the element type.
        batch: The number of sequences.
        k_values: The values of k, which occur in random order.
        layout: The layout of all tensors.
        **fields: Fields of the template. `arguments` replace the arguments that follow from the other parameters.

    Returns:
        The template.
    """
    arguments = {
        "top_ks": tensor(batch, domain=choice(k_values), layout=layout),
        "top_ps": tensor(batch, domain=choice(P_VALUES), dtype=F32, layout=layout),
        "batch_size": batch,
        **{"top_ks_size": batch, "top_ps_size": batch, "top_k": 9, "top_p": 0.625},
        **BUFFER_ARGUMENTS,
        **fields.pop("arguments", {}),
    }
    return CaseTemplate(label, (), arguments, result_layout=layout, **fields)


def shared_template(label: str, k: int | None, p: float | None, **fields: Any) -> CaseTemplate:
    """Return a template with one k or one p for all sequences.

    Args:
        label: The label of the cases without the element type.
        k: The value of k for all sequences; None for one value per sequence.
        p: The value of p for all sequences; None for one value per sequence.
        **fields: Fields of the template.

    Returns:
        The template.
    """
    k_arguments = {} if k is None else {"top_k": k, "top_ks_size": 0}
    p_arguments = {} if p is None else {"top_p": p, "top_ps_size": 0}
    return per_sequence_template(label, arguments={**k_arguments, **p_arguments}, **fields)


SHARED_TEMPLATES = (
    per_sequence_template("each", dtypes=DtypeSelection.all, smoke=True),
    per_sequence_template("strided", layout=strided, dtypes=DtypeSelection.all),
    per_sequence_template("two", 2),
    per_sequence_template("one", 1, arguments={"top_ks_size": 0, "top_ps_size": 0}),
    per_sequence_template("one-of-size-1", 1, dtypes=DtypeSelection.all),
    per_sequence_template(
        "one-value-for-all", arguments={"top_ks_size": 1, "top_ps_size": 1}, dtypes=DtypeSelection.all
    ),
    per_sequence_template("many", 300),
    per_sequence_template("narrow", 17, dtypes=(I32,)),
    per_sequence_template("far", 17, (2**40 + 5, 0, 3, 2**32), dtypes=(I64,)),
    shared_template("one-k", 40, None, dtypes=DtypeSelection.all),
    shared_template("no-k", 0, None, dtypes=DtypeSelection.all),
    shared_template("large-k", 1025, None),
    shared_template("one-p", None, 0.875, dtypes=DtypeSelection.all),
    shared_template("no-p", None, 0.0),
    shared_template("large-p", None, 1.5),
    shared_template("negative-p", None, -0.5),
    shared_template("one-of-both", 5, 0.75, dtypes=DtypeSelection.all),
    shared_template("none-of-both", 0, 0.0),
    shared_template("k-without-p", 3, 0.0),
    shared_template("p-without-k", 0, 0.5),
    per_sequence_template("none", 0),
    per_sequence_template("many", MANY_ROWS, dtypes=(I64,), large=True),
)
"""The templates that both setup functions have."""

SAME_RESULT_REASONS = {
    (
        "one-k|no-k|large-k|one-p|no-p|large-p|negative-p|one-of-both|none-of-both|k-without-p|p-without-k|one|two|"
        "one-of-size-1|one-value-for-all"
    ): "one value applies to all sequences"
}
"""The reason why some wrong results can pass a case (`Case.non_discriminating`), by a regular expression for labels."""

register("diopiSetupTopkRuntimeArgsInp", templates=SHARED_TEMPLATES, non_discriminating=SAME_RESULT_REASONS)
register(
    "diopiSetupToppRuntimeArgsInp",
    templates=(
        *SHARED_TEMPLATES,
        *(
            per_sequence_template(f"{name}-{label}", arguments={f"top_p_{name}": value})
            for name in ("decay", "min")
            for label, value in {"1": 1.0, "0": 0.0, "negative": -0.5, "above-1": 1.25}.items()
        ),
        per_sequence_template("no-reset", arguments={"top_p_reset_ids": -1}, dtypes=DtypeSelection.all),
        per_sequence_template("far-reset", arguments={"top_p_reset_ids": 2**31 - 1}, dtypes=(I64, I32)),
    ),
    non_discriminating={".*": "one value applies to all sequences"},
)
