"""Break long declarations of C and C++ into lines."""

from __future__ import annotations

from textwrap import wrap

LINE_LENGTH = 120
"""Maximum length of a line of a header."""


def wrap_declaration(declared: str) -> str:
    """Return the declaration in lines of at most `LINE_LENGTH` characters, broken only before parameters."""
    opening, parameters = declared.split("(", 1)
    return wrap_parameters(f"{opening}(", parameters)


def wrap_parameters(opening: str, parameters: str) -> str:
    """Return a declaration whose text up to the first parameter is `opening`, as `wrap_declaration` does."""
    unbreakable = ", ".join(parameter.replace(" ", "\0") for parameter in parameters.split(", "))
    lines = wrap(unbreakable, LINE_LENGTH - len(opening), break_long_words=False, break_on_hyphens=False)
    return opening + f"\n{' ' * len(opening)}".join(lines).replace("\0", " ")
