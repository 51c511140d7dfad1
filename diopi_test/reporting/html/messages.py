"""Translation of the suite's messages to Chinese, phrase by phrase. Texts of vendors stay as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache

from diopi_test.reporting.html.page import asset

FILE = "messages.json"
"""The file with pairs of a regular expression for an English phrase and its Chinese translation.

They are applied in order. In a translation, `$1` stands for the first group. The scripts of pages read the same file.
"""


def translate_message(text: str, language: str) -> str:
    """Return a message of the suite in a language; phrases without a translation stay in English."""
    if language == "en":
        return text
    for expression, translation in _phrases():
        text = expression.sub(translation, text)
    return text


@cache
def _phrases() -> Sequence[tuple[re.Pattern[str], str]]:
    """Return the translated phrases: a regular expression and the template that replaces its matches."""
    return [(re.compile(pattern), translation.replace("$", "\\")) for pattern, translation in json.loads(asset(FILE))]
