"""The definitions of functions, which an HTML report shows for functions with failures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from diopi_proto.headers import declaration
from diopi_proto.interface import prototypes
from diopi_proto.prototype import Prototype

LINE = 80
"""The maximum number of characters of a declaration on a single line."""


def describe_functions(names: Iterable[str]) -> Mapping[str, Any]:
    """Return the definitions of functions by name; names that are not in the standard are omitted.

    Returns:
        For each function: `declaration` in C, `text` (the documentation), `facts` (pairs of a key of `texts.json` and a
        value), and `page` (the path of its documentation page).
    """
    named = ((name, prototypes()[name]) for name in sorted(set(names)) if name in prototypes())
    return {
        name: {
            "declaration": _declaration(prototype),
            "text": prototype.doc,
            "facts": list(_facts(prototype)),
            "page": definition_page(prototype),
        }
        for name, prototype in named
    }


def definition_page(prototype: Prototype) -> str:
    """Return the path of the documentation page of a function, with the anchor of the function."""
    return f"api/{prototype.family}.html#{prototype.name.lower()}"


def _declaration(prototype: Prototype) -> str:
    """Return the C declaration. A declaration longer than `LINE` has one parameter per line."""
    text = declaration(prototype)
    if len(text) <= LINE:
        return text
    name, _, parameters = text.removesuffix(")").partition("(")
    return f"{name}(\n    " + parameters.replace(", ", ",\n    ") + ")"


def _facts(prototype: Prototype) -> Iterator[tuple[str, str]]:
    """Yield facts about a function, such as its element types and its guarantee, each after a key of `texts.json`."""
    yield "family", prototype.family
    if prototype.dtypes:
        yield "element-types", ", ".join(dtype.name for dtype in prototype.dtypes)
    for name, dtypes in prototype.argument_dtypes.items():
        yield "element-types", f"{name}: {', '.join(dtype.name for dtype in dtypes)}"
    yield "guarantee", prototype.guarantee
    forms = [form.name for form in prototypes().values() if form.base == prototype.base and form is not prototype]
    if forms:
        yield "forms", ", ".join(forms)
    if prototype.backward:
        yield "gradient", prototype.backward
