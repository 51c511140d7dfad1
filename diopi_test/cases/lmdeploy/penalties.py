"""Cases of changes to logits before a token is sampled: temperature, repetition penalty, banned words.

A template describes cases that differ only in their element type (`diopi_test.cases.template`).

`Case.non_discriminating` is the reason why a wrong result can pass a case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, nan
from typing import Any

from diopi_proto.dtypes import half
from diopi_proto.types import Dtype
from diopi_test.cases.domains import avoid_points, choice, integer_values, normal, special, uniform
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.lmdeploy.arguments import (
    BF16,
    F16,
    F32,
    I32,
    VOCABULARY,
    float32_tensor,
    integer_table,
    random_integers,
    smoke_template,
)
from diopi_test.cases.lmdeploy.words import word_table
from diopi_test.cases.template import CaseTemplate, DtypeSelection, register, tensor

Shape = tuple[int, ...]
"""The sizes of a template."""

# Temperature


def _temperature_arguments(template: CaseTemplate[Shape], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiBatchApplyTemperaturePenaltyInp` for the sizes of a template.

    The sizes are (sequences, vocabulary, padded vocabulary).
    """
    rows, vocabulary, padded_vocabulary = template.sizes
    return {
        "logits": tensor(rows, padded_vocabulary, domain=normal(4), layout=template.layout),
        "bias": tensor(padded_vocabulary, domain=normal()),
        "temperatures": float32_tensor(rows, domain=uniform(0.5, 2)),
        "batch_size": rows,
        "vocab_size": vocabulary,
        "vocab_size_padd": padded_vocabulary,
    }


register(
    "diopiBatchApplyTemperaturePenaltyInp",
    templates=(
        smoke_template("padded", 3, 13, 16),
        CaseTemplate("less-padding", (3, 15, 16)),
        CaseTemplate("whole", (4, 11, 11), dtypes=DtypeSelection.all),
        CaseTemplate("no-bias", (4, 13, 16), {"bias": None}, dtypes=DtypeSelection.all),
        CaseTemplate("mostly-padding", (3, 3, 9), dtypes=half),
        CaseTemplate(
            "all-padding", (2, 0, 9), dtypes=DtypeSelection.all, non_discriminating="every element is the padding value"
        ),
        CaseTemplate("one-sequence", (1, 30, 32)),
        CaseTemplate("many-sequences", (65, 6, 7), dtypes=(F32, BF16)),
        CaseTemplate("long", (2, 1029, 1031), dtypes=(F32, F16)),
        CaseTemplate("no-sequences", (0, 5, 6)),
        CaseTemplate("strided", (3, 9, 10), layout=strided, dtypes=DtypeSelection.all),
        CaseTemplate("transposed", (3, 9, 10), layout=transposed),
        CaseTemplate(
            "inputs-strided",
            (5, 9, 10),
            {
                "bias": tensor(10, layout=strided),
                "temperatures": float32_tensor(5, domain=uniform(0.5, 2), layout=strided),
            },
        ),
        CaseTemplate("cold", (4, 9, 10), domains={"temperatures": choice([1e-6, 1e-4, 0.01, 0.1]), "bias": normal()}),
        CaseTemplate("zero", (4, 9, 10), domains={"temperatures": choice([0.0])}),
        CaseTemplate("hot", (4, 9, 10), domains={"temperatures": uniform(50, 100)}, dtypes=(F32, F16)),
        CaseTemplate("special", (4, 19, 21), domains={"logits": special}, dtypes=DtypeSelection.all),
        CaseTemplate("banned", (3, 9, 10), domains={"logits": choice([-inf, 1.5, -2.0, nan])}),
        CaseTemplate("vocabulary", (5, VOCABULARY - 4, VOCABULARY), dtypes=(F32, F16), large=True),
    ),
    derive=_temperature_arguments,
)

# Repetition

NO_LENGTHS = {"input_lengths": None}
"""The argument that omits the lengths of the inputs, so that the prompts have no padding."""

REPEATED_TOKENS_REASON = "every token is repeated"
"""The reason why a function that reads wrong tokens can pass a case (`Case.non_discriminating`).

Because every token of the vocabulary occurs in the history, every logit receives the penalty.
"""

PENALTY_TYPES = {"none": 0, "additive": 1, "multiplicative": 2}
"""The values of the argument `penalty_type`, by the name that case labels use."""


def _repetition_arguments(template: CaseTemplate[Shape], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiBatchApplyRepetitionPenaltyInp` for the sizes of a template.

    The sizes are those of `_repetition_template`. The call is for the last step.
    """
    rows, vocabulary, longest_prompt, steps = template.sizes
    return {
        "logits": tensor(rows, vocabulary, domain=avoid_points([0], normal(3)), layout=template.layout),
        "penalties": float32_tensor(rows, domain=uniform(1.25, 2)),
        "output_ids": random_integers(steps, rows, low=0, high=vocabulary - 1),
        "batch_size": rows,
        "vocab_size": vocabulary,
        "input_lengths": random_integers(rows, low=1, high=longest_prompt),
        "max_input_length": longest_prompt,
        "step": steps - 1,
        "penalty_type": 2,
    }


def _repetition_template(
    label: str, sizes: Sequence[int] = (3, 17, 4, 8), penalty_type: int = 2, **fields: Any
) -> CaseTemplate[Shape]:
    """Return a template of the repetition penalty.

    Args:
        label: The label of the cases without the element type.
        sizes: The numbers (sequences, tokens in the vocabulary, tokens of the longest prompt, steps).
        penalty_type: A value of `PENALTY_TYPES`.
        **fields: Fields of the template. `arguments` replace derived arguments.

    Returns:
        The template.
    """
    arguments = {"penalty_type": penalty_type, **fields.pop("arguments", {})}
    return CaseTemplate(label, tuple(sizes), arguments, **fields)


register(
    "diopiBatchApplyRepetitionPenaltyInp",
    templates=(
        *(
            _repetition_template(name, penalty_type=penalty_type, dtypes=DtypeSelection.all, smoke=penalty_type > 0)
            for name, penalty_type in PENALTY_TYPES.items()
        ),
        *(
            _repetition_template(
                f"{name}-no-padding", penalty_type=penalty_type, arguments=NO_LENGTHS, dtypes=(F32, BF16)
            )
            for name, penalty_type in list(PENALTY_TYPES.items())[1:]
        ),
        _repetition_template("in-the-prompt", arguments={"step": 3}, dtypes=(F32, F16)),
        _repetition_template("shorter-prompt", arguments={"max_input_length": 3}),
        _repetition_template("at-the-prompt", arguments={"step": 4}),
        _repetition_template("first", arguments={"step": 0}, non_discriminating="the sequence contains no token yet"),
        _repetition_template("second", arguments={"step": 1, **NO_LENGTHS}),
        _repetition_template("last", arguments={"step": 8}),
        _repetition_template(
            "repeated", (3, 5, 6, 30), dtypes=DtypeSelection.all, non_discriminating=REPEATED_TOKENS_REASON
        ),
        _repetition_template("repeated-additive", (3, 5, 6, 30), 1, non_discriminating=REPEATED_TOKENS_REASON),
        _repetition_template("one-sequence", (1, 31, 3, 9)),
        _repetition_template("many-sequences", (33, 9, 3, 5), dtypes=(F32, BF16)),
        _repetition_template("long", (2, 1031, 60, 200), dtypes=(F32, F16)),
        _repetition_template("no-sequences", (0, 5, 2, 4)),
        _repetition_template("strided", layout=strided, dtypes=DtypeSelection.all),
        _repetition_template("transposed", layout=transposed),
        _repetition_template(
            "inputs-strided",
            arguments={
                "output_ids": random_integers(8, 3, low=0, high=16, layout=transposed),
                "input_lengths": random_integers(3, low=1, high=4, layout=strided),
                "penalties": float32_tensor(3, domain=uniform(1.25, 2), layout=strided),
            },
        ),
        _repetition_template("vocabulary", (5, VOCABULARY, 1_000, 2_053), large=True),
        _repetition_template("flat-table", arguments={"output_ids": random_integers(24, low=0, high=16)}),
        _repetition_template("rewarding", domains={"penalties": uniform(0.25, 0.75)}, dtypes=(F32, F16)),
        _repetition_template(
            "int32",
            arguments={
                "output_ids": tensor(8, 3, domain=integer_values(0, 16), dtype=I32),
                "input_lengths": tensor(3, domain=integer_values(1, 4), dtype=I32),
            },
        ),
        *(
            _repetition_template(
                f"special-{name}", (4, 19, 4, 40), penalty_type, domains={"logits": special}, arguments=NO_LENGTHS
            )
            for name, penalty_type in list(PENALTY_TYPES.items())[1:]
        ),
    ),
    derive=_repetition_arguments,
)

# Banned words

HISTORY = [[5, 1, 9], [2, 7, 4], [3, 7, 8], [9, 6, 6], [1, 2, 3]]
"""The tokens of three sequences (columns) at the steps 0 to 4 (rows), as the argument `output_ids`."""

BANNED_WORDS = (
    word_table(14, [4], [3, 9, 2], [7, 9, 5], [0], [6, 11]),
    word_table(14, [7, 6, 3], [1], [8, 6, 10], [2, 7, 7, 6, 9]),
    word_table(14, [8, 6, 5], [9, 4, 8, 6, 2], [4, 8, 7], [11, 1]),
)
"""The banned words of each of the three sequences of `HISTORY`, one to five tokens long, as the argument `bad_words`.

At step 4, some words are complete except for the last token. Other words differ from the history in one token.
"""


def _ban_arguments(template: CaseTemplate[Shape], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiBanBadWordsInp` that bans the words `BANNED_WORDS` after the tokens `HISTORY`.

    Args:
        template: The template. Its layout applies to the logits.
        dtype: Not used; the logits have the type under test.

    Returns:
        The arguments by name.
    """
    return {
        "logits": tensor(3, 12, layout=template.layout),
        "output_ids": integer_table(HISTORY),
        "bad_words": integer_table(BANNED_WORDS),
        "id_offset": 0,
        "bad_words_len": len(BANNED_WORDS[0][0]),
        "share_words": False,
        "batch_size": 3,
        "vocab_size": 12,
        "step": 4,
    }


def ban_template(label: str, arguments: Mapping[str, Any] | None = None, **fields: Any) -> CaseTemplate[Shape]:
    """Return a template of a call that bans words.

    Args:
        label: The label of the cases without the element type.
        arguments: Arguments that replace those for `HISTORY` and `BANNED_WORDS`.
        **fields: Fields of the template.

    Returns:
        The template.
    """
    return CaseTemplate(label, (), arguments or {}, **fields)


def _shared_words(words: Any, **arguments: Any) -> Mapping[str, Any]:
    """Return the arguments of a call with one list of banned words for all sequences.

    Args:
        words: The table of banned words (`word_table`).
        **arguments: Further arguments.

    Returns:
        The arguments by name.
    """
    return {"bad_words": integer_table(words), "share_words": True, "bad_words_len": len(words[0]), **arguments}


BEYOND_VOCABULARY = word_table(10, [12], [13, 3], [3, 9, 12], [8, 6, 2])
"""A table of banned words. Most words contain the tokens 12 or 13, beyond the vocabulary of 12 tokens.

Words whose last token is beyond the vocabulary can't be banned.
"""

register(
    "diopiBanBadWordsInp",
    templates=(
        ban_template("own", dtypes=DtypeSelection.all, smoke=True),
        ban_template(
            "shared",
            _shared_words(word_table(10, [4], [6, 2], [9, 6, 8], [7, 5])),
            dtypes=DtypeSelection.all,
            smoke=True,
        ),
        *(ban_template(f"step-{step}", {"step": step}, dtypes=(F32, F16)) for step in (2, 3)),
        ban_template("step-0", {"step": 0}, non_discriminating="at step 0, no banned word of several tokens has begun"),
        ban_template("step-1-pairs", _shared_words(word_table(10, [5, 2], [1, 3], [9, 4], [5, 1, 7]), step=1)),
        ban_template("token-0", _shared_words(word_table(8, [0], [3, 9, 0], [8, 6, 5])), dtypes=(F32, BF16)),
        ban_template("beyond", _shared_words(BEYOND_VOCABULARY), dtypes=(F32, F16)),
        ban_template("full-row", _shared_words(word_table(4, [4], [7, 6, 8]))),
        ban_template("one-word", _shared_words(word_table(3, [3, 9, 7]))),
        ban_template("no-words", _shared_words(word_table(4)), non_discriminating="there are no banned words"),
        ban_template("same-last", _shared_words(word_table(9, [3, 9, 7], [8, 6, 7], [9, 4, 7]))),
        ban_template("offset", _shared_words(word_table(10, [7, 6, 2], [8, 6, 5], [9, 1, 10]), id_offset=1)),
        ban_template("offset-2", {"id_offset": 3, "step": 3}),
        ban_template("flat-table", {"output_ids": integer_table([token for row in HISTORY for token in row])}),
        ban_template(
            "int32", {"output_ids": integer_table(HISTORY, I32), "bad_words": integer_table(BANNED_WORDS, I32)}
        ),
        ban_template("strided", layout=strided, dtypes=DtypeSelection.all),
        ban_template("transposed", {"output_ids": integer_table(HISTORY, layout=transposed)}, layout=transposed),
        ban_template("words-strided", {"bad_words": integer_table(BANNED_WORDS, layout=strided)}),
        ban_template("special", domains={"logits": special}, dtypes=DtypeSelection.all),
        ban_template("vocabulary", {"logits": tensor(3, VOCABULARY), "vocab_size": VOCABULARY}, large=True),
    ),
    derive=_ban_arguments,
)
