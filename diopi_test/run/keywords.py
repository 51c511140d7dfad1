"""Keyword expressions: the language of pytest's option `-k`. They are matched with case IDs, without running pytest.

A word matches if the ID contains it, ignoring case. `and`, `or`, `not` and parentheses combine words. Labels never
contain "diopi", so a word with "diopi" can only match the function. Such a word is decided without labels, unless it
contains a bracket.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _pytest.mark.expression import Expression

PREFIX = "diopi"
"""The prefix of the names of all standard functions, in lower case; no label contains it."""


class SelectionError(ValueError):
    """An impossible selection. The message states what was selected and what is expected."""


class _UndecidedError(Exception):
    """A word whose match depends on the label."""

    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


@dataclass(frozen=True)
class Keywords:
    """A keyword expression, such as `softmax and not float16`. Raises SelectionError if it is malformed."""

    text: str

    def __post_init__(self) -> None:
        self._expression  # noqa: B018 - compiling it is the check

    def match(self, name: str) -> bool:
        """Return whether the expression matches a case ID or the name of a function."""
        lowered = name.lower()
        return self._expression.evaluate(lambda word, /, **_: word.lower() in lowered)

    def may_match(self, function: str) -> bool:
        """Return whether the expression may match the ID of a case of `function`."""
        return self._may_match(function.lower(), {})

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Return the words of the expression in order."""
        spaced = self.text.replace("(", " ").replace(")", " ").split()
        return tuple(word for word in spaced if word not in ("and", "or", "not"))

    def _may_match(self, function: str, decided: Mapping[str, bool]) -> bool:
        """Return whether the expression may match the ID of a case of `function`, in lower case.

        `decided` states whether words that depend on the label match. Both values are tried for all other such words.
        """

        def matches(word: str, /, **_: Any) -> bool:
            if word in decided:
                return decided[word]
            if (occurrence := _occurs_in_ids(word.lower(), function)) is None:
                raise _UndecidedError(word)
            return occurrence

        try:
            return self._expression.evaluate(matches)
        except _UndecidedError as error:
            return any(self._may_match(function, {**decided, error.word: value}) for value in (True, False))

    @cached_property
    def _expression(self) -> Expression:
        """The compiled expression; raises SelectionError with the position of a syntax error.

        The import of pytest's parser takes 40 ms, which a run without `-k` does not spend.

        Raises:
            SelectionError: The expression has a syntax error, or a word with parameters.
        """
        from _pytest.mark import expression

        syntax_errors: tuple[type[Exception], ...] = (
            SyntaxError,
            getattr(expression, "ParseError", SyntaxError),
        )  # pytest 8
        if (place := self.text.find("=")) >= 0:
            raise SelectionError(self._point_at("words take no parameters", place + 1))
        try:
            return expression.Expression.compile(self.text)
        except syntax_errors as error:
            message, column = (
                getattr(error, new, None) or getattr(error, old)
                for new, old in (("msg", "message"), ("offset", "column"))
            )
            raise SelectionError(self._point_at(message, column)) from error

    def _point_at(self, message: str, column: int) -> str:
        """Return the message, and below the expression a caret at `column`, counted from 1."""
        message, line = ("".join(c if c.isprintable() else " " for c in text) for text in (message, self.text))
        return f"-k {self.text!r}: {message}\n    {line}\n    {' ' * (column - 1)}^"


def _occurs_in_ids(word: str, function: str) -> bool | None:
    """Return True if a word occurs in every ID of a function and False if in none, both in lower case.

    Return None if it depends on the label.
    """
    if word in function:
        return True
    before, bracket, _ = word.partition("[")
    if bracket and not function.endswith(before):
        return False
    return False if not bracket and PREFIX in word else None
