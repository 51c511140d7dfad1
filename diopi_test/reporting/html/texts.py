"""The texts of HTML pages in English and Chinese, which JSON files in this folder contain."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import final

LANGUAGES = ("en", "zh")
"""The languages of pages, in the order in which the JSON files list the texts of a key."""


@final
class Texts:
    """The texts of a JSON file in one language; call the object with a key to get a text.

    Args:
        file: The name of the file in the folder of this module. For each key, it has a text in each language.
        language: One of `LANGUAGES`.
    """

    def __init__(self, file: str, language: str) -> None:
        content = files(__package__).joinpath(file).read_text("utf-8")
        self._texts: Mapping[str, Sequence[str]] = json.loads(content)
        self.language = language
        self._place = LANGUAGES.index(language)

    def __call__(self, key: str, **values: object) -> str:
        """Return the text of a key; each name in braces is replaced by the value with this name."""
        return self._texts[key][self._place].format(**values)
