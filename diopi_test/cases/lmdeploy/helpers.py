"""Cases of small helpers: gathering tokens, adding a number, counting padding, swapping axes, looking up embeddings.

A template describes cases that differ only in their element type (`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diopi_proto.types import Dtype
from diopi_test.cases.domains import any_value, full_range, integer_values
from diopi_test.cases.layouts import Layout, contiguous, strided, transposed
from diopi_test.cases.lmdeploy.arguments import (
    BF16,
    F16,
    F32,
    I32,
    I64,
    MANY_ROWS,
    VOCABULARY,
    random_integers,
    smoke_template,
)
from diopi_test.cases.template import (
    SMOKE_IN_ALL_DTYPES,
    Arguments,
    ByDtype,
    CaseTemplate,
    DtypeSelection,
    register,
    tensor,
)
from diopi_test.cases.tensors import literal

Shape = tuple[int, ...]
"""The sizes of a template."""


def _length_tensor(values: Sequence[int], layout: Layout = contiguous) -> ByDtype:
    """Return a tensor argument of these lengths in the type under test."""
    return ByDtype(lambda dtype: literal(values, dtype, layout))


# Gathering of tokens


def gather_template(
    label: str,
    lengths: Sequence[int],
    max_length: int,
    steps: int,
    capacity: int,
    layout: Layout = contiguous,
    **fields: Any,
) -> CaseTemplate:
    """Return a template of `diopiGatherOutput`, which gathers the prompt and the generated tokens of each sequence.

    Args:
        label: The label of the cases without the element type.
        lengths: The length of each sequence's prompt.
        max_length: The length to which the prompts are padded.
        steps: The number of steps; the table of tokens has one more row.
        capacity: The number of tokens for which the result has room, per sequence.
        layout: The layout of all tensors.
        **fields: Fields of the template. `arguments` replace the arguments that follow from the other parameters.

    Returns:
        The template.
    """
    batch, overrides = len(lengths), fields.pop("arguments", {})
    arguments: Arguments = {
        "output_ids": tensor(batch, capacity, domain=full_range, layout=layout),
        "ids": tensor(steps + 1, batch, domain=full_range, layout=layout),
        "context_length": _length_tensor(lengths, layout),
        "max_context_len": max_length,
        "max_gen_step": steps,
        "max_output_len": capacity,
        "batch_size": batch,
    }
    return CaseTemplate(label, (), {**arguments, **overrides}, **fields)


register(
    "diopiGatherOutput",
    templates=(
        gather_template("ragged", (3, 1, 4, 2), 4, 9, 10, **SMOKE_IN_ALL_DTYPES),
        gather_template("earlier", (3, 1, 4, 2), 4, 9, 10, arguments={"max_gen_step": 7}),
        gather_template("more-padding", (3, 1, 4, 2), 5, 9, 10),
        gather_template("narrow", (1, 2), 2, 3, 4, dtypes=(I32,)),
        gather_template("far", (1, 2), 2, 3, 4, dtypes=(I64,)),
        gather_template(
            "whole", (3, 3, 3), 3, 8, 8, dtypes=DtypeSelection.all, non_discriminating="every position is written"
        ),
        gather_template("no-prompts", (0, 0), 0, 5, 7, non_discriminating="there is no prompt"),
        gather_template("empty-prompts", (0, 3, 0), 3, 6, 7),
        gather_template("in-the-prompt", (3, 1, 5), 5, 4, 6, dtypes=DtypeSelection.all),
        gather_template("prompt-alone", (2, 5, 4), 5, 5, 6),
        gather_template("no-times", (2, 1), 3, 0, 4, non_discriminating="nothing is gathered"),
        gather_template("one-time", (1, 1), 1, 1, 4, non_discriminating="there is no padding yet"),
        gather_template("one-sequence", (2,), 6, 11, 8),
        gather_template("much-room", (2, 4), 4, 6, 40),
        gather_template("many-sequences", [n % 6 for n in range(67)], 6, 9, 12),
        gather_template("strided", (3, 1, 4, 2), 4, 9, 10, strided, dtypes=DtypeSelection.all),
        gather_template("transposed", (3, 1, 4, 2), 4, 9, 10, transposed),
        gather_template("flat-table", (3, 1), 4, 9, 10, arguments={"ids": tensor(20, domain=full_range)}),
        gather_template("long", (17, 120, 64), 120, 900, 1000),
        gather_template("many", [0] * 67, 1_000, 2_000, 2_053, dtypes=(I64,), large=True).replace(
            arguments={"context_length": tensor(67, domain=integer_values(1, 1_000))}
        ),
    ),
)

# Addition of a number


def plus_template(
    label: str, length: int, size: int, val: int, layout: Layout = contiguous, **fields: Any
) -> CaseTemplate:
    """Return a template of `diopiPlusScalarInp`, which adds a number to the first elements of a vector.

    Args:
        label: The label of the cases without the element type.
        length: The length of the vector.
        size: The number of elements that change.
        val: The number that is added.
        layout: The layout of the vector.
        **fields: Fields of the template, and `domain`, the domain of the vector; by default integers from −1000 to
            1000.

    Returns:
        The template.
    """
    domain = fields.pop("domain", integer_values(-1000, 1000))
    arguments: Arguments = {"inoutput": tensor(length, domain=domain, layout=layout), "val": val, "size": size}
    return CaseTemplate(label, (), arguments, **fields)


register(
    "diopiPlusScalarInp",
    templates=(
        plus_template("all", 11, 11, 3, **SMOKE_IN_ALL_DTYPES),
        plus_template("some", 11, 7, -5, **SMOKE_IN_ALL_DTYPES),
        plus_template("narrow", 17, 9, 5, dtypes=(I32,)),
        plus_template("far-values", 17, 9, 5, domain=full_range, dtypes=(I64,)),
        plus_template("one", 9, 1, 100),
        plus_template("none", 9, 0, 4, dtypes=DtypeSelection.all),
        plus_template("all-but-one", 9, 8, 17),
        plus_template("nothing", 9, 6, 0),
        plus_template("empty", 0, 0, 3),
        plus_template("single", 1, 1, -1),
        plus_template("long", 1031, 1000, 2, dtypes=DtypeSelection.all),
        plus_template("strided", 13, 9, 6, strided, dtypes=DtypeSelection.all),
        plus_template("wrapping", 12, 10, 2**30, domain=full_range, dtypes=DtypeSelection.all),
        plus_template("wrapping-back", 12, 10, -(2**31), domain=full_range, dtypes=DtypeSelection.all),
        plus_template("far", 12, 10, 2**62 + 1, domain=full_range, dtypes=(I64,)),
        plus_template("beyond-float", 12, 10, 2**53 + 1, dtypes=(I64,)),
        plus_template("many", MANY_ROWS, 65_537, -5, dtypes=(I64,), large=True),
    ),
)

# Counting of padding


def padding_template(
    label: str, lengths: Sequence[int], max_length: int, layout: Layout = contiguous, **fields: Any
) -> CaseTemplate:
    """Return a template of `diopiUpdatePaddingCount`, which counts the padding of each sequence.

    Args:
        label: The label of the cases without the element type.
        lengths: The length of each sequence.
        max_length: The length to which the sequences are padded.
        layout: The layout of the lengths and of the counts.
        **fields: Fields of the template.

    Returns:
        The template.
    """
    arguments: Arguments = {
        "total_padding_count": ByDtype(lambda dtype: literal([0] * len(lengths), dtype, layout)),
        "input_lengths": _length_tensor(lengths, layout),
        "max_input_length": max_length,
        "batch_size": len(lengths),
    }
    return CaseTemplate(label, (), arguments, **fields)


register(
    "diopiUpdatePaddingCount",
    templates=(
        padding_template("ragged", (3, 7, 1, 5, 7, 2, 6, 4, 5), 7, **SMOKE_IN_ALL_DTYPES),
        padding_template("ragged-otherwise", (5, 1, 7, 2, 3, 7, 4, 6, 2), 7),
        padding_template("narrow", (2, 3, 0, 4), 4, dtypes=(I32,)),
        padding_template("wide", (2**33, 3, 2**32, 7), 2**34, dtypes=(I64,)),
        padding_template("two", (4, 9), 12, dtypes=DtypeSelection.all),
        padding_template("rows-of-16", (3, 7, 1, 5, 7, 2, 6, 4, 5, 6, 1, 7, 2, 3, 4, 0), 7),
        padding_template("one", (4,), 6),
        padding_template("no-padding", (5, 5, 5, 5), 5),
        padding_template("all-padding", (0, 3, 0, 1), 3),
        padding_template("all-empty", (0, 0, 0), 8),
        padding_template("none", (), 3),
        padding_template("one-long", (1, 1, 1, 40), 40),
        padding_template("many", [n % 61 for n in range(300)], 60),
        padding_template("strided", (3, 7, 1, 5, 2), 7, strided, dtypes=DtypeSelection.all),
        padding_template("long", (2**24 + 1, 3, 2**24), 2**24 + 3, dtypes=DtypeSelection.all),
        padding_template("far", (2**40 + 1, 3, 2**33), 2**41, dtypes=(I64,)),
        padding_template("in-order", range(11), 10),
        padding_template("many", (), 4_097, dtypes=(I64,), large=True).replace(
            arguments={
                "total_padding_count": tensor(MANY_ROWS, domain=integer_values(0, 0)),
                "input_lengths": tensor(MANY_ROWS, domain=integer_values(0, 4_097)),
                "batch_size": MANY_ROWS,
            }
        ),
    ),
)

# Swapping of axes


def _transpose_arguments(template: CaseTemplate[Shape], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiTransposeAxis01`, which swaps the first two axes, for a template's sizes."""
    dim0, dim1, dim2 = template.sizes
    return {
        "input": tensor(dim0, dim1, dim2, domain=any_value, layout=template.layout),
        "dim0": dim0,
        "dim1": dim1,
        "dim2": dim2,
    }


register(
    "diopiTransposeAxis01",
    templates=(
        smoke_template("plain", 3, 4, 5),
        CaseTemplate("tall", (31, 2, 3), dtypes=DtypeSelection.all),
        CaseTemplate("wide", (2, 31, 3)),
        CaseTemplate("deep", (2, 3, 131), dtypes=(F16, I64)),
        CaseTemplate("matrix", (7, 6, 1), dtypes=(F32, I32)),
        CaseTemplate("square", (5, 5, 5), dtypes=(F32, BF16)),
        CaseTemplate("one-row", (1, 6, 4)),
        CaseTemplate("one-column", (6, 1, 4)),
        CaseTemplate("single", (1, 1, 1)),
        CaseTemplate("empty", (0, 4, 3)),
        CaseTemplate("no-depth", (3, 4, 0)),
        CaseTemplate("strided", (3, 4, 5), layout=strided, dtypes=DtypeSelection.all),
        CaseTemplate("transposed", (3, 4, 5), layout=transposed, dtypes=(F32, F16)),
        CaseTemplate("large", (33, 17, 9), dtypes=(F32, Dtype.int32)),
        CaseTemplate("wide", (37, 67, 131), large=True),
    ),
    derive=_transpose_arguments,
)

# Embeddings


def _step_embedding_arguments(template: CaseTemplate[Shape], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiEmbeddingLookupPosEncoding`, which looks up the tokens of one step.

    The sizes of the template are (rows of the embedding table, width of an embedding, sequences, steps). The step is
    the last but one.
    """
    rows, width, batch, steps = template.sizes
    return {
        "embedding_table": tensor(rows, width, domain=any_value, layout=template.layout),
        "all_ids": random_integers(steps, batch, low=0, high=rows - 1),
        "batch_size": batch,
        "hidden_units": width,
        "step": steps - 2,
    }


register(
    "diopiEmbeddingLookupPosEncoding",
    templates=(
        smoke_template("plain", 11, 6, 4, 5),
        CaseTemplate("first", (11, 6, 4, 5), {"step": 0}, dtypes=DtypeSelection.all),
        CaseTemplate("last", (11, 6, 4, 5), {"step": 4}, dtypes=DtypeSelection.all),
        CaseTemplate("one-sequence", (11, 6, 1, 5)),
        CaseTemplate("many-sequences", (7, 3, 65, 3), dtypes=(F32, BF16)),
        CaseTemplate("one-column", (17, 1, 9, 3)),
        CaseTemplate("wide", (5, 259, 3, 3), dtypes=(F32, F16)),
        CaseTemplate("two-words", (2, 6, 4, 5)),
        CaseTemplate("no-width", (5, 0, 3, 3)),
        CaseTemplate("strided", (11, 6, 4, 5), layout=strided, dtypes=DtypeSelection.all),
        CaseTemplate("transposed", (11, 6, 4, 5), layout=transposed),
        CaseTemplate(
            "ids-transposed", (11, 6, 4, 5), {"all_ids": random_integers(5, 4, low=0, high=10, layout=transposed)}
        ),
        CaseTemplate("flat-table", (11, 6, 4, 5), {"all_ids": random_integers(20, low=0, high=10)}),
        CaseTemplate("sequence-major-shape", (11, 6, 4, 5), {"all_ids": random_integers(4, 5, low=0, high=10)}),
        CaseTemplate("vocabulary", (VOCABULARY, 67, 1_031, 5), large=True),
        CaseTemplate("int32", (11, 6, 4, 5), {"all_ids": tensor(5, 4, domain=integer_values(0, 10), dtype=I32)}),
    ),
    derive=_step_embedding_arguments,
)


def _prompt_embedding_arguments(template: CaseTemplate[Shape], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiInputIdsEmbeddingLookupPosEncoding`, which looks up the embeddings of a prompt.

    The sizes of the template are (rows of the embedding table, width of an embedding, tokens of the prompt).
    """
    rows, width, length = template.sizes
    return {
        "input_ids": random_integers(length, low=0, high=rows - 1),
        "embedding_table": tensor(rows, width, domain=any_value, layout=template.layout),
        "input_lengths": length,
        "hidden_units": width,
    }


register(
    "diopiInputIdsEmbeddingLookupPosEncoding",
    templates=(
        smoke_template("plain", 11, 6, 9),
        CaseTemplate("one-token", (11, 6, 1), dtypes=DtypeSelection.all),
        CaseTemplate("no-tokens", (11, 6, 0)),
        CaseTemplate("many-tokens", (5, 3, 131), dtypes=(F32, BF16)),
        CaseTemplate("large-table", (601, 5, 20), dtypes=(F32, F16)),
        CaseTemplate("wide", (5, 259, 3)),
        CaseTemplate("one-column", (17, 1, 11)),
        CaseTemplate("no-width", (5, 0, 3)),
        CaseTemplate("strided", (11, 6, 9), layout=strided, result_layout=strided, dtypes=DtypeSelection.all),
        CaseTemplate("transposed", (11, 6, 9), layout=transposed, result_layout=transposed),
        CaseTemplate("ids-strided", (11, 6, 9), {"input_ids": random_integers(9, low=0, high=10, layout=strided)}),
        CaseTemplate("int32", (11, 6, 9), {"input_ids": tensor(9, domain=integer_values(0, 10), dtype=I32)}),
        CaseTemplate("vocabulary", (VOCABULARY, 67, 1_031), large=True),
        CaseTemplate("one-word", (1, 6, 4), non_discriminating="there is only one ID"),
        CaseTemplate(
            "in-order", (11, 6, 11), {"input_ids": tensor(11, domain=lambda r, n, d: r.permutation(n), dtype=I64)}
        ),
    ),
    derive=_prompt_embedding_arguments,
)
