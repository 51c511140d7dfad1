"""The definitions of functions, for the pages of functions with failures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from diopi_proto.headers import declaration
from diopi_proto.interface import prototypes
from diopi_proto.prototype import Prototype

LINE = 80
"""Characters of a declaration on one line."""


def describe_functions(names: Iterable[str]) -> Mapping[str, Any]:
    """Return the declaration, the text, facts and the documentation page of functions of the standard, by name."""
    found = ((name, prototypes()[name]) for name in sorted(set(names)) if name in prototypes())
    return {
        name: {
            "declaration": _declaration(prototype),
            "text": prototype.doc,
            "facts": list(_facts(prototype)),
            "page": f"api/{prototype.family}.html#{name.lower()}",
        }
        for name, prototype in found
    }


def _declaration(prototype: Prototype) -> str:
    """Return the C declaration; a long one has one parameter per line."""
    text = declaration(prototype)
    if len(text) <= LINE:
        return text
    name, _, parameters = text.removesuffix(")").partition("(")
    return f"{name}(\n    " + parameters.replace(", ", ",\n    ") + ")"


def _facts(prototype: Prototype) -> Iterator[tuple[str, str]]:
    """Yield the element types, the guarantee and the related functions, by a key of `texts.json`."""
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
