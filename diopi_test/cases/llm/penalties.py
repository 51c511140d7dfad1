"""Cases of `diopiApplyPenalty` and `diopiApplyPenaltyV2`, which penalize the logits of tokens that occurred before.

A template describes cases that differ only in their element type (`diopi_test.cases.template`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.cases.domains import choice, integer_values, normal, special_except, uniform
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.llm.numbers import F16, I32, I64
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, register, tensor
from diopi_test.cases.tensors import literal


@dataclass(frozen=True)
class PenaltySizes:
    """The sizes of a call that penalizes tokens.

    Attributes:
        token_counts: The number of penalized tokens of each sequence.
        vocabulary_size: The size of the vocabulary, which is the number of logits of a sequence.
        index_dtype: The element type of token IDs and token counts; only `diopiApplyPenaltyV2` accepts int64.
    """

    token_counts: Sequence[int]
    vocabulary_size: int = 11
    index_dtype: Dtype = I32


def penalty_template(label: str, *token_counts: int, **fields: Any) -> CaseTemplate[PenaltySizes]:
    """Return a template of a call that penalizes tokens.

    Args:
        label: The label of the cases without the element type.
        *token_counts: The number of penalized tokens of each sequence.
        **fields: Other fields of `PenaltySizes`, and fields of the template.

    Returns:
        The template.
    """
    sizes = {name: fields.pop(name) for name in list(fields) if name in PenaltySizes.__annotations__}
    return CaseTemplate(label, PenaltySizes(token_counts, **sizes), **fields)


def _distinct_token_ids(sizes: PenaltySizes) -> list[np.ndarray[Any, Any]]:
    """Return a vector of penalized token IDs per sequence.

    The IDs of a sequence differ. They are random, but equal sizes give equal IDs.
    """
    rng = np.random.default_rng(sizes.vocabulary_size)
    return [rng.permutation(sizes.vocabulary_size)[:count] for count in sizes.token_counts]


def penalty_arguments(template: CaseTemplate[PenaltySizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiApplyPenalty` for the sizes of a template.

    Args:
        template: The template. Its layout applies to the logits.
        dtype: Not used; logits and penalties have the type under test.

    Returns:
        The arguments by name. The token IDs of all sequences are one after another, and each sequence has its own
        penalties.
    """
    sizes, layout = template.sizes, template.layout
    ids, batch = _distinct_token_ids(sizes), len(sizes.token_counts)
    penalty = tensor(batch, domain=uniform(0.2, 1.5))
    return {
        "logits": tensor(batch, sizes.vocabulary_size, domain=normal(3), layout=layout),
        "presence_penalty": penalty,
        "frequency_penalty": penalty,
        "p_token_ids": literal(np.concatenate(ids) if ids else np.zeros(0, int), I32),
        "p_token_counts": tensor(sum(sizes.token_counts), domain=integer_values(1, 9), dtype=I32),
        "p_cumsum_seq_len": literal(np.array([0, *accumulate(sizes.token_counts)]), I32),
        "p_max_len_in_batch": max(sizes.token_counts, default=0),
    }


def penalty_v2_arguments(template: CaseTemplate[PenaltySizes], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiApplyPenaltyV2` for the sizes of a template.

    Args:
        template: The template. Its layout applies to the logits.
        dtype: Not used; logits and penalties have the type under test.

    Returns:
        The arguments by name. The tokens are flat positions in the logits, in random order. Each token has its own
        penalties.
    """
    sizes = template.sizes
    flat = [sequence * sizes.vocabulary_size + ids for sequence, ids in enumerate(_distinct_token_ids(sizes))]
    rng = np.random.default_rng(1)
    flat_positions = rng.permutation(np.concatenate(flat)) if flat else np.zeros(0, int)
    penalty = tensor(sum(sizes.token_counts), domain=uniform(0.2, 1.5))
    return {
        "logits": tensor(len(sizes.token_counts), sizes.vocabulary_size, domain=normal(3), layout=template.layout),
        "presence_penalty": penalty,
        "frequency_penalty": penalty,
        "repetition_penalty": tensor(sum(sizes.token_counts), domain=uniform(0.6, 1.8)),
        "p_token_ids": literal(flat_positions, sizes.index_dtype),
        "p_token_counts": tensor(sum(sizes.token_counts), domain=integer_values(1, 9), dtype=sizes.index_dtype),
    }


SHARED_TEMPLATES = (
    penalty_template("", 4, 2, 7, **SMOKE_IN_ALL_DTYPES),
    penalty_template("one-sequence", 5),
    penalty_template("without-tokens", 3, 0, 2, dtypes=DtypeSelection.all),
    penalty_template("all-tokens", 9, 9, vocabulary_size=9),
    penalty_template("one-each", 1, 1, 1, 1),
    penalty_template("large-vocabulary", 40, 17, vocabulary_size=3001),
    penalty_template("many-sequences", *(1, 3, 2) * 9, dtypes=DtypeSelection.all),
    penalty_template("no-tokens", 0, 0),
    penalty_template(
        "rewarding", 4, 2, domains={"presence_penalty": uniform(-2, -0.5), "frequency_penalty": uniform(-1, 1)}
    ),
    penalty_template("transposed", 4, 2, 7, layout=transposed),
    penalty_template("strided", 4, 2, 7, layout=strided, dtypes=DtypeSelection.all),
    penalty_template("special", 9, 19, vocabulary_size=19, domains={"logits": special_except()}),
    penalty_template(
        "exact",
        4,
        2,
        7,
        domains={
            "logits": integer_values(-20, 20),
            "presence_penalty": integer_values(-3, 3),
            "frequency_penalty": integer_values(-3, 3),
            "repetition_penalty": choice([0.5, 1.0, 2.0]),
        },
        dtypes=DtypeSelection.all,
        exact=True,
    ),
    penalty_template("vocabulary", 517, 1031, 3, vocabulary_size=32_003, large=True),
    penalty_template("half", *(67, 131) * 9, vocabulary_size=4099, layout=transposed, dtypes=[F16], large=True),
)
"""The templates that both functions have."""

register("diopiApplyPenalty", templates=SHARED_TEMPLATES, derive=penalty_arguments)
register(
    "diopiApplyPenaltyV2",
    templates=(
        *SHARED_TEMPLATES,
        penalty_template("int64", 4, 2, 7, index_dtype=I64, dtypes=DtypeSelection.all),
        penalty_template("zeros", 8, 9, domains={"logits": choice([0.0, -0.0, 1.5, -2.0])}),
    ),
    derive=penalty_v2_arguments,
)
