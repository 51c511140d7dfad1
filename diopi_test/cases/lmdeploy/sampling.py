"""Cases of `diopiTopKSampling` and `diopiTopPSampling`, which draw a token per sequence.

Top-k sampling draws among the k most probable tokens. Top-p sampling draws among the most probable tokens whose total
probability is p. There are three groups of cases:

- Samples that are large enough to compare the frequencies of tokens with their probabilities.
- Calls in which the drawn token is certain, so that all results are determined.
- Calls that omit tensors, or must not change them.

A template describes cases that differ only in their element type (`diopi_test.cases.template`). A domain draws the
values of a tensor (`diopi_test.cases.domains`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, choice, normal
from diopi_test.cases.layouts import Layout, contiguous, strided, transposed
from diopi_test.cases.lmdeploy.arguments import (
    F16,
    F32,
    I32,
    NO_WORKSPACE,
    VOCABULARY,
    float32_tensor,
    random_integers,
    workspace_calls,
)
from diopi_test.cases.products import fixed_values
from diopi_test.cases.template import ByDtype, CaseTemplate, DtypeSelection, register, tensor
from diopi_test.cases.tensors import (
    literal,
    mask,
)

LOGITS = tuple(float(x) for x in np.log((8, 5, 4, 2.5, 1.5, 1, 0.5, 0.25, 0.125)))
"""The logits of nine tokens: the logarithms of different weights from 8 to 0.125."""

SAMPLE_SEQUENCES = 280
"""The number of sequences in a call that draws a large sample."""

LOG_PROBABILITIES = ("cum_log_probs", "output_log_probs")
"""The arguments to which a call writes logarithms of probabilities."""

UPDATED_TENSORS = ("finished", "sequence_lengths", *LOG_PROBABILITIES)
"""The optional arguments that a call updates."""


def permuted_rows(logits: Sequence[float]) -> Domain:
    """Return a domain of rows; every row is a random permutation of `logits`."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        """Return the permutations, one after another."""
        return rng.permuted(np.tile(logits, (count // len(logits), 1)), axis=1).reshape(-1)

    return draw


def cycle_values(*values: float) -> Domain:
    """Return a domain that repeats the numbers `values` in order."""
    return fixed_values(values)


def _sampling_arguments(
    batch: int, vocabulary: int, logits: Domain, k: Domain, p: Domain, layout: Layout
) -> dict[str, Any]:
    """Return the arguments that both sampling functions share.

    Args:
        batch: The number of sequences.
        vocabulary: The number of tokens in the vocabulary.
        logits: The domain of the logits.
        k: The domain of `runtime_top_k`.
        p: The domain of `runtime_top_p`.
        layout: The layout of all tensors.

    Returns:
        The arguments by name. Some sequences are finished, and others skip the call.
    """
    return {
        "output_ids": random_integers(4, batch, low=0, high=vocabulary - 1, layout=layout),
        "logits": tensor(batch, vocabulary, domain=logits, layout=layout),
        "persistent_workspace": None,
        "persistent_workspace_size": 0,
        **NO_WORKSPACE,
        "end_ids": random_integers(batch, low=0, high=vocabulary - 1, layout=layout),
        "finished": mask(batch, period=7, layout=layout),
        "sequence_lengths": random_integers(batch, low=1, high=30, layout=layout),
        "step": 2,
        "batch_size": batch,
        "vocab_size_padded": vocabulary,
        "runtime_top_k": ByDtype(lambda dtype: tensor(batch, domain=k, layout=layout, dtype=I32).resolve(dtype)),
        "runtime_top_p": float32_tensor(batch, domain=p, layout=layout),
        "skip_decode": literal([b % 11 == 3 for b in range(batch)], Dtype.bool, layout),
        "cum_log_probs": float32_tensor(batch, domain=normal(3, -10), layout=layout),
        "output_log_probs": float32_tensor(batch, domain=normal(), layout=layout),
        "generators": tuple(range(100, 100 + 2 * batch, 2)),
    }


def sampling_template(
    label: str,
    batch: int = 9,
    vocabulary: int = 17,
    logits: Domain | None = None,
    k: Domain | int = 1,
    p: Domain | float = 1.0,
    layout: Layout = contiguous,
    omitted_names: Sequence[str] = (),
    **fields: Any,
) -> CaseTemplate:
    """Return a template of a sampling function.

    Args:
        label: The label of the cases without the element type.
        batch: The number of sequences.
        vocabulary: The number of tokens in the vocabulary.
        logits: The domain of the logits; None for a normal distribution.
        k: The domain of `runtime_top_k`, or a number for all sequences.
        p: The domain of `runtime_top_p`, or a number for all sequences.
        layout: The layout of all tensors.
        omitted_names: The names of arguments that are omitted.
        **fields: Fields of the template. `arguments` replace the arguments that follow from the other parameters.

    Returns:
        The template.
    """
    k_domain, p_domain = (value if callable(value) else cycle_values(value) for value in (k, p))
    arguments = _sampling_arguments(batch, vocabulary, logits or normal(2), k_domain, p_domain, layout)
    overrides = {**dict.fromkeys(omitted_names), **fields.pop("arguments", {})}
    return CaseTemplate(label, (), {**arguments, **overrides}, **fields)


def statistics_template(label: str, k: Domain | int = 5, p: Domain | float = 0.875, **fields: Any) -> CaseTemplate:
    """Return a template with enough sequences to compare the frequency of each token with its probability.

    Args:
        label: The label of the cases without the element type.
        k: As in `sampling_template`.
        p: As in `sampling_template`.
        **fields: Other arguments of `sampling_template`.

    Returns:
        The template. All sequences have permutations of `LOGITS`.
    """
    return sampling_template(label, SAMPLE_SEQUENCES, len(LOGITS), permuted_rows(LOGITS), k, p, **fields)


DOMINANT_LOGIT: Mapping[str, Any] = {"vocabulary": 7, "logits": permuted_rows((60.0, 0.5, -1.0, 2.0, 1.5, -3.0, 0.25))}
"""Arguments of `sampling_template` with one logit that is so large that its token is always drawn."""

TIED_LOGITS = choice([1.0, 1.0, 0.0, -1.0])
"""A domain of logits in which several tokens have the same largest value."""

SHARED_SEEDS = {"generators": tuple(n // 2 * 2 for n in range(SAMPLE_SEQUENCES))}
"""The generators of a call in which the sequences 2n and 2n + 1 have the same seed."""


def _draw_row_pairs(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return rows of permuted `LOGITS`, each twice in succession.

    With `SHARED_SEEDS`, the sequences of such a pair also have the same seed and must get the same token.
    """
    return np.repeat(permuted_rows(LOGITS)(rng, count // 2, dtype).reshape(-1, len(LOGITS)), 2, axis=0).reshape(-1)


def shared_templates(greedy_arguments: Mapping[str, Any]) -> Iterator[CaseTemplate]:
    """Yield the templates that both sampling functions have.

    Args:
        greedy_arguments: The arguments of `sampling_template` with which a function always draws the most probable
            token.

    Yields:
        The templates.
    """

    def certain_template(label: str, batch: int = 9, vocabulary: int = 17, **fields: Any) -> CaseTemplate:
        """Return a template in which every sequence gets its most probable token.

        Args:
            label: The label of the cases without the element type.
            batch: The number of sequences.
            vocabulary: The number of tokens in the vocabulary.
            **fields: Other arguments of `sampling_template`.

        Returns:
            The template.
        """
        return sampling_template(label, batch, vocabulary, **{**greedy_arguments, **fields})

    yield statistics_template("sample", dtypes=DtypeSelection.all, smoke=True)
    yield statistics_template("bare", omitted_names=(*UPDATED_TENSORS, "skip_decode"), dtypes=(F32, F16))
    yield statistics_template("all-of-it", p=1.0)
    yield statistics_template("little", p=0.5)
    yield statistics_template("own-shares", p=cycle_values(0.25, 0.5, 1.0, 0.75))
    yield statistics_template("strided", layout=strided)
    yield statistics_template("twins", arguments=SHARED_SEEDS, domains={"logits": _draw_row_pairs})
    yield statistics_template(
        "largest-seeds", arguments={"generators": tuple(2**64 - 1 - 2 * n for n in range(SAMPLE_SEQUENCES))}
    )
    yield statistics_template("only-cum", omitted_names=["output_log_probs"])
    yield statistics_template("no-ends", omitted_names=["finished"])
    yield sampling_template("ties", 60, 8, TIED_LOGITS, 3, 0.75)
    plain = certain_template("certain", dtypes=DtypeSelection.all, smoke=(F32, F16))
    yield plain
    yield certain_template("dominant", **DOMINANT_LOGIT, k=5, p=0.875, dtypes=DtypeSelection.all)
    yield certain_template("masked", logits=permuted_rows((-inf, 1.5, -2.0, 0.5, -inf, 3.0)), vocabulary=6)
    for name in (*UPDATED_TENSORS, "skip_decode"):
        yield certain_template(f"no-{name.replace('_', '-')}", omitted_names=[name])
    yield certain_template("no-log-probs", omitted_names=LOG_PROBABILITIES, dtypes=DtypeSelection.all)
    yield certain_template("all-finished", arguments={"finished": mask(9, fill=True)}, dtypes=(F32, F16))
    yield certain_template("none-finished", arguments={"finished": mask(9, fill=False)})
    yield certain_template("all-skipped", arguments={"skip_decode": mask(9, fill=True)})
    yield certain_template("first-step", arguments={"step": 0})
    yield certain_template("last-step", arguments={"step": 3}, layout=transposed, dtypes=DtypeSelection.all)
    yield certain_template("one-sequence", 1, 30)
    yield certain_template("many-tokens", 3, 1031, dtypes=(F32, F16))
    yield from workspace_calls(plain.replace(smoke=False))
    vocabulary_arguments = {"logits": tensor(9, VOCABULARY, domain=normal(2)), "vocab_size_padded": VOCABULARY}
    yield certain_template("vocabulary", arguments=vocabulary_arguments, large=True)


def top_k_templates() -> Iterator[CaseTemplate]:
    """Yield the templates of `diopiTopKSampling`, which samples among the k most probable tokens."""
    yield from shared_templates({"k": 1})
    yield statistics_template("own-limits", k=cycle_values(2, 9, 4, 3), p=1.0)
    yield statistics_template("beyond", k=40)
    yield statistics_template("at-the-end", k=len(LOGITS), p=1.0)
    yield sampling_template("no-share", k=5, p=0.0)


PERSISTENT_WORKSPACE_QUERY = {"persistent_workspace_size": -1}
"""The argument of a call that queries the size of the persistent workspace instead of sampling."""


def top_p_templates() -> Iterator[CaseTemplate]:
    """Yield the templates of `diopiTopPSampling`, which samples among tokens with a total probability of p."""
    yield from shared_templates({"p": 0.0078125})
    yield sampling_template("first-of-equals", 12, 8, TIED_LOGITS, p=0.0625)
    yield sampling_template("just-enough", **DOMINANT_LOGIT, p=0.9921875)
    plain = sampling_template("", p=0.0078125)
    yield plain.replace("persistent-size-asked", PERSISTENT_WORKSPACE_QUERY, smoke=(F32,))
    yield plain.replace("both-sizes-asked", {**PERSISTENT_WORKSPACE_QUERY, "workspace_size": -9})
    yield plain.replace(
        "persistent-workspace", {"persistent_workspace": tensor(64, dtype=I32), "persistent_workspace_size": 64}
    )


TemplateMaker = Callable[[], Iterator[CaseTemplate]]
"""Returns the templates of a sampling function."""

TEMPLATE_MAKERS: Mapping[str, TemplateMaker] = {
    "diopiTopKSampling": top_k_templates,
    "diopiTopPSampling": top_p_templates,
}
"""The function that returns the templates, by the name of the function under test."""

for _name, _make in TEMPLATE_MAKERS.items():
    register(_name, templates=tuple(_make()))
