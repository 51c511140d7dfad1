"""Text that is added to the docstring of a prototype: paragraphs for its facts, and the summaries of derived forms."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Protocol

from diopi_proto.callers import NO_BREAK
from diopi_proto.facts import MayAlias
from diopi_proto.parameters import Parameter

LINE_LENGTH = 116
"""Maximum length of the lines that are added to a docstring."""

FORM_DOCS = {
    "inplace": "In-place form of `{base}`:\n`{first}` is overwritten with the result, which is converted to its dtype. "
    "`{first}` must have the shape of the result.",
    "scalar": "Scalar form of `{base}`:\n{scalars} passed as `diopiScalar_t`, which contains an integer or a "
    "floating-point number.",
    "inplace_scalar": "In-place scalar form of `{base}`:\n`{first}` is overwritten with the result, which is "
    "converted to its dtype. {scalars} passed as `diopiScalar_t`.",
}
"""The summary of each derived form, by the name of the form; the words in braces are replaced."""


class Described(Protocol):
    """A fact or a call form that has a sentence in the docstring."""

    def sentence(self, tensors: Sequence[str]) -> str:
        """Return the sentence; `tensors` names the arguments of the function that are tensors."""


def extend_docstring(doc: str, parameters: Sequence[Parameter], *described: Sequence[Described]) -> str:
    """Return `doc` with a paragraph for each sequence of facts and for each result that may alias an argument."""
    tensors = [parameter.name for parameter in parameters if parameter.is_tensor]
    for facts in described:
        sentences = " ".join(filter(None, (fact.sentence(tensors) for fact in facts)))
        lines = wrap(sentences, LINE_LENGTH, break_long_words=False, break_on_hyphens=False)
        doc = "\n".join([doc, "", *lines]) if lines else doc
    for parameter in parameters:
        if fact := parameter.fact(MayAlias):
            doc += f"\n\n`{parameter.name}` may be the tensor of `{fact.argument}`."
    return doc.replace(NO_BREAK, " ")
