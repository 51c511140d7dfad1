"""Build HTML in Python, for the parts of pages that need no JavaScript."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import final


@final
class Markup(str):
    """Text that is HTML markup and must not be escaped."""

    __slots__ = ()


Content = str | Iterable["Content"] | None
"""The content of an element: text, markup, nothing, or several of these."""


def tag(name: str, *content: Content, **attributes: str | float | None) -> Markup:
    """Return an element; text in its content and attributes is escaped.

    Args:
        name: The name of the element.
        *content: The content.
        **attributes: The attributes. A trailing underscore is removed, and underscores between words become hyphens.
            Attributes that are None are omitted.

    Returns:
        The element.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup("<br>" if name == "br" else f"<{name}{written}>{join(content)}</{name}>")


def join(content: Content) -> Markup:
    """Return content as markup: escape text, keep markup, and concatenate several contents."""
    if content is None:
        return Markup("")
    if isinstance(content, Markup):
        return content
    if isinstance(content, str):
        return Markup(escape(content))
    return Markup("".join(map(join, content)))


def static_table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[Content]]) -> Markup:
    """Return a table that needs no script; on a phone, each row becomes a list of its cells.

    Args:
        caption: The caption.
        columns: The titles of the columns.
        rows: The cells. A plain string is considered a number and aligned to the right, except in the first column.
            Pass other text as markup.

    Returns:
        The table, in a region that scrolls if the table is too wide.
    """
    is_number = [
        bool(place and rows and not isinstance(cell, Markup)) for place, cell in enumerate(rows[0] if rows else ())
    ]
    classes = ["number" if number else None for number in (is_number or [False] * len(columns))]
    head = [tag("th", title, scope="col", class_=class_) for title, class_ in zip(columns, classes, strict=True)]
    body = []
    for row in rows:
        cells = zip(row, columns, classes, strict=True)
        first, *cells_after = (_cell(place, *cell) for place, cell in enumerate(cells))
        body.append(tag("tr", first, cells_after))
    table = tag("table", tag("caption", caption), tag("thead", tag("tr", head)), tag("tbody", body), class_="cards")
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _cell(place: int, content: Content, title: str, class_: str | None) -> Markup:
    """Return a table cell. The first cell of a row is the row's header.

    Args:
        place: The number of the cell in its row.
        content: The content.
        title: The title of the column.
        class_: The CSS class; None for no class.
    """
    if not place:
        return tag("th", content, scope="row")
    return tag("td", content, class_=class_, data_label=title)


def name_list(names: Iterable[str]) -> Markup:
    """Return names with commas between them; a line breaks inside a name only if the name is longer than the line."""
    *first, last = list(names) or [""]
    return tag("span", [[unbroken(f"{name},"), " "] for name in first], unbroken(last) if last else None)


def unbroken(name: str) -> Markup:
    """Return a name in which a line breaks only if the name is longer than the line."""
    return tag("span", breakable(name), class_="unbroken")


def words(text: str) -> Markup:
    """Return a text in which a line breaks only between its words, except in words that are longer than the line."""
    first, *following = text.split(" ")
    return tag("span", unbroken(first), [[" ", unbroken(word)] for word in following])


def breakable(text: str) -> Sequence[Content]:
    """Return a name with places at which a browser may break it: between its words and after punctuation."""
    return list(_parts(text))


def _parts(text: str) -> Iterator[Content]:
    """Yield the parts of a name with the element `<wbr>` between them, at each position that `BREAKS` matches."""
    first, *following = BREAKS.split(text)
    yield first
    for part in following:
        yield Markup("<wbr>")
        yield part


BREAKS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[\[_/])|(?<=\w-)(?!\d)|(?<=[.,])(?!\d)")
"""Matches the positions at which a line may break in a name: before capitals, and after punctuation except in numbers.

page.js has the same expression.
"""
