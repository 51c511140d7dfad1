"""Cases of `diopiStopWordsCriterion` and `diopiLengthCriterion`, which decide whether a sequence is finished.

A sequence is finished when its last tokens are a stop word, or when it reaches its maximum length. A template describes
cases that differ only in their element type (`diopi_test.cases.template`).

Large cases belong to a level with the sizes of real models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.cases.case import ResultOverride
from diopi_test.cases.domains import integer_values
from diopi_test.cases.layouts import Layout, contiguous, strided, transposed
from diopi_test.cases.lmdeploy.arguments import MANY_ROWS
from diopi_test.cases.lmdeploy.words import word_table
from diopi_test.cases.template import ByDtype, CaseTemplate, DtypeSelection, register, tensor
from diopi_test.cases.tensors import (
    literal,
    mask,
)

I64, I32 = Dtype.int64, Dtype.int32
"""Short names for the integer types under test."""

HISTORY = [
    [5, 1, 9, 3, 3, 8, 2, 6, 4],
    [2, 7, 4, 5, 1, 8, 7, 2, 4],
    [3, 7, 8, 3, 2, 8, 1, 7, 4],
    [9, 6, 6, 7, 3, 8, 6, 1, 4],
]
"""The tokens of nine sequences (columns) at the steps 0 to 3 (rows), as the argument `output_ids`."""

STOP_WORDS = (
    word_table(7, [9], [1]),
    word_table(7, [7, 6]),
    word_table(7, [6, 6], [4, 8, 6]),
    word_table(7, [5, 3, 7], [3, 7, 7]),
    word_table(7, [3, 1, 2, 3]),
    word_table(7, [8, 8], [8, 8, 8, 8, 8]),
    word_table(7, [2, 7, 1], [6, 7]),
    word_table(7, [6, 2, 7, 1, 5]),
    word_table(7),
)
"""The stop words of each of the nine sequences of `HISTORY`, one to five tokens long, as the argument `stop_words`.

At the last step, some words are complete. Other words are complete only in part, or were complete a step earlier.
"""


def table_of_tested_dtype(values: Any, layout: Layout = contiguous) -> ByDtype:
    """Return a tensor argument with these integers in the type under test."""
    return ByDtype(lambda dtype: literal(values, dtype, layout))


def _stop_arguments(template: CaseTemplate, dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of a call with the sequences `HISTORY` and the stop words `STOP_WORDS`.

    Args:
        template: The template. Its layout applies to `finished`.
        dtype: The integer type under test.

    Returns:
        The arguments by name. Only the last sequence is finished before the call.
    """
    return {
        "output_ids": literal(HISTORY, dtype),
        "stop_words": literal(STOP_WORDS, dtype),
        "finished": literal([False] * 8 + [True], Dtype.bool, template.layout),
        "id_offset": 0,
        "stop_words_len": 7,
        "batch_size": 9,
        "step": 3,
    }


def stop_template(label: str, arguments: Mapping[str, Any] | None = None, **fields: Any) -> CaseTemplate:
    """Return a template of a call that looks for stop words.

    Args:
        label: The label of the cases without the element type.
        arguments: Arguments that replace those for `HISTORY` and `STOP_WORDS`.
        **fields: Fields of the template.

    Returns:
        The template.
    """
    return CaseTemplate(label, (), arguments or {}, **fields)


def _two_sequences(token_offset: int) -> Mapping[str, Any]:
    """Return the arguments of two sequences. Each sequence ends with its stop word if `token_offset` is 0.

    Args:
        token_offset: A number that is added to both tokens of the second sequence. With 2³², the second sequence has no
            stop word, but a comparison of the lower 32 bits finds one.

    Returns:
        The arguments by name.
    """
    return {
        "output_ids": table_of_tested_dtype([[1, 4 + token_offset], [2, 5 + token_offset]]),
        "stop_words": table_of_tested_dtype([word_table(2, [1, 2]), word_table(2, [4, 5])]),
        "finished": mask(2, fill=False),
        **{"stop_words_len": 2, "batch_size": 2, "step": 1},
    }


ROW_OF_16: Mapping[str, Any] = {
    "output_ids": tensor(4, 16, domain=integer_values(1, 9)),
    "stop_words": literal(np.resize(STOP_WORDS[:8], (16, 2, 7))),
    "finished": mask(16, period=7),
    "batch_size": 16,
}
"""The arguments of a case with 16 sequences of four random tokens, whose stop words repeat `STOP_WORDS`."""

MANY_HISTORIES: Mapping[str, Any] = {
    "output_ids": tensor(4, 10_007, domain=integer_values(1, 9)),
    "stop_words": literal(np.resize(STOP_WORDS[:8], (10_007, 2, 7))),
    "finished": mask(10_007, period=7),
    "batch_size": 10_007,
}
"""The arguments of a large case with 10,007 sequences of four random tokens, whose stop words repeat `STOP_WORDS`."""

register(
    "diopiStopWordsCriterion",
    templates=(
        stop_template("last", dtypes=DtypeSelection.all, smoke=True),
        stop_template("rows-of-16", ROW_OF_16),
        *(stop_template(f"step-{step}", {"step": step}, dtypes=DtypeSelection.all) for step in (0, 1, 2)),
        stop_template(
            "all-finished",
            {"finished": mask(9, fill=True)},
            non_discriminating="all sequences are finished already",
        ),
        stop_template("some-finished", {"finished": mask(9)}),
        stop_template(
            "offset", {"id_offset": 1, "output_ids": table_of_tested_dtype([*HISTORY, [9, 6, 6, 7, 3, 8, 6, 1, 4]])}
        ),
        stop_template("offset-2", {"id_offset": 2, "step": 2}),
        stop_template("offset-row", {"id_offset": 9, "step": 2}, dtypes=DtypeSelection.all),
        stop_template("flat-table", {"output_ids": table_of_tested_dtype([token for row in HISTORY for token in row])}),
        stop_template("strided", layout=strided, dtypes=DtypeSelection.all),
        stop_template(
            "tables-transposed",
            {
                "output_ids": table_of_tested_dtype(HISTORY, transposed),
                "stop_words": table_of_tested_dtype(STOP_WORDS, strided),
            },
        ),
        stop_template(
            "one-sequence",
            {
                "output_ids": table_of_tested_dtype([[3], [1], [2]]),
                "stop_words": table_of_tested_dtype([word_table(4, [1, 2], [3])]),
                "finished": mask(1, fill=False),
                "stop_words_len": 4,
                "batch_size": 1,
                "step": 2,
            },
        ),
        *(
            stop_template(label, _two_sequences(token_offset), dtypes=dtypes)
            for label, token_offset, dtypes in (("narrow", 0, (I32,)), ("far", 2**32, (I64,)))
        ),
        stop_template(
            "full-row",
            {
                "stop_words": table_of_tested_dtype([word_table(3, [7 - b, b], [6]) for b in range(9)]),
                "stop_words_len": 3,
            },
        ),
        stop_template("many", MANY_HISTORIES, dtypes=(I64,), large=True),
    ),
    derive=_stop_arguments,
)


def length_template(
    label: str, limits: Sequence[int], finished: Any, step: int, layout: Layout = contiguous, **fields: Any
) -> CaseTemplate:
    """Return a template of a call that compares a step with the maximum length of each sequence.

    Args:
        label: The label of the cases without the element type.
        limits: The maximum length of each sequence.
        finished: The argument `finished`: the flags of the sequences before the call.
        step: The step.
        layout: The layout of the maximum lengths and of the results.
        **fields: Fields of the template.

    Returns:
        The template.
    """
    results = {name: ResultOverride(layout=layout) for name in ("should_stop", "finished_sum")}
    arguments = {
        "finished": finished,
        "sequence_limit_length": table_of_tested_dtype(limits, layout),
        "batch_size": len(limits),
        "step": step,
    }
    return CaseTemplate(label, (), arguments, results=results, **fields)


LIMITS = (3, 9, 5, 6, 7, 4, 5, 5, 8, 6, 2)
"""The maximum length of each of eleven sequences."""

NONE_FINISHED, SOME_FINISHED = mask(11, fill=False), mask(11)
"""The argument `finished` of eleven sequences: no sequence, or every third sequence, is finished before the call."""

register(
    "diopiLengthCriterion",
    templates=(
        length_template("some", LIMITS, NONE_FINISHED, 5, dtypes=DtypeSelection.all, smoke=True),
        length_template("some-more", LIMITS, SOME_FINISHED, 5, dtypes=DtypeSelection.all, smoke=True),
        length_template("rows-of-16", (*LIMITS, 3, 9, 5, 6, 1), mask(16), 5),
        length_template("none", LIMITS, NONE_FINISHED, 1, dtypes=DtypeSelection.all),
        length_template("one", LIMITS, NONE_FINISHED, 2),
        length_template("all-but-one", LIMITS, NONE_FINISHED, 8),
        length_template("all", LIMITS, NONE_FINISHED, 9, dtypes=DtypeSelection.all),
        length_template("all-with-some", LIMITS, SOME_FINISHED, 12),
        length_template("before-only", (100,) * 11, SOME_FINISHED, 5),
        length_template("narrow", (3, 4, 9, 2), mask(4, fill=False), 3, dtypes=(I32,)),
        length_template("wide", (2**32 + 1, 4, 2**33, 2), mask(4, fill=False), 3, dtypes=(I64,)),
        length_template("at-0", (0, 1, 0, 2), mask(4, fill=False), 0, dtypes=DtypeSelection.all),
        length_template("one-sequence", (4,), mask(1, fill=False), 4),
        length_template("one-going-on", (4,), mask(1, fill=False), 3),
        length_template("strided", LIMITS, mask(11, layout=strided), 4, strided, dtypes=DtypeSelection.all),
        length_template("many", [7 + n % 5 for n in range(300)], mask(300, period=7), 9),
        length_template("many", (), mask(MANY_ROWS, period=7), 5, dtypes=(I64,), large=True).replace(
            arguments={"sequence_limit_length": tensor(MANY_ROWS, domain=integer_values(2, 9)), "batch_size": MANY_ROWS}
        ),
        length_template("far", (2**31 - 1, 2**31 - 2, 5), mask(3, fill=False), 2**31 - 2, dtypes=DtypeSelection.all),
    ),
    non_discriminating={".*": "the results are flags, and the number of finished sequences"},
)
