"""`diopi-test describe`: show what the standard and the suite state about one function."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from textwrap import fill, indent
from typing import Any

import click

from diopi_proto.messages import describe_unknown

WIDTH = 100
"""The maximum number of characters of a line of text."""


@click.command()
@click.argument("function")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def describe(function: str, as_json: bool) -> None:
    """Show the meaning, signature, guarantees and cases of a function.

    FUNCTION is the C name, for example diopiSum, in any case and with or without "diopi". The text states what each
    parameter accepts, what the standard guarantees of the results, and how an implementation is written in Python and
    in C. It also states how many cases the suite stores, which conventions the family has, and which installed vendors
    have the function.

    Exit status: 0 the function is shown; 2 the standard has no such function.
    """
    from diopi_test.quality.inventory import describe_function

    record = describe_function(_find_name(function))
    if as_json:
        click.echo(json.dumps(record, indent=1, ensure_ascii=False))
        return
    for line in description_lines(record):
        click.echo(line)


def _find_name(text: str) -> str:
    """Return the standard function whose name is `text`, in any case, with or without the prefix "diopi".

    Raises:
        click.UsageError: if there is none; the message suggests similar names.
    """
    from diopi_proto.interface import prototypes

    names = {name.removeprefix("diopi").lower(): name for name in prototypes()}
    word = text.lower().removeprefix("diopi")
    if word not in names:
        similar = [names[match] for match in get_close_matches(word, names)]
        raise click.UsageError(describe_unknown(text, prototypes(), "standard functions", similar))
    return names[word]


def description_lines(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the text for a record of `diopi_test.quality.inventory.describe_function`."""
    yield f"{record['function']}, family {record['family']}"
    yield ""
    yield _wrap(f"{record['declaration']};", hanging="    ")
    yield ""
    yield record["doc"]
    yield from _section("Parameters", _parameter_lines(record["parameters"]))
    yield from _section("Results", record["results"])
    yield from _section("Implementation in Python", (*_python_lines(record), *record["implementation"]))
    yield from _section("Implementation in C", [f"Include <diopi/{record['header']}> and define the function."])
    yield from _section("Related", _related_lines(record))
    yield from _section("Stored cases", _case_lines(record["cases"]))
    yield from ("", f"Conventions of the family {record['family']}", indent(record["conventions"], "  "))
    vendors = (f"{name}: {'yes' if has else 'no'}" for name, has in record["vendors"].items())
    yield from _section("Vendors", vendors)


def _section(title: str, lines: Iterator[str] | Sequence[str]) -> Iterator[str]:
    """Yield a section: an empty line, the title, and the indented lines; nothing for a section without lines."""
    text = [_wrap(line, hanging="    ") for line in lines]
    if text:
        yield ""
        yield title
        yield from (indent(paragraph, "  ") for paragraph in text)


def _wrap(text: str, hanging: str) -> str:
    """Return a paragraph with lines of at most `WIDTH` characters; all except the first are indented."""
    return fill(text, WIDTH, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False)


def _parameter_lines(parameters: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a paragraph per parameter, except the context, which is the same in all functions."""
    for parameter in parameters:
        if parameter["role"] != "context":
            optional = ", may be NULL" if parameter["optional"] else ""
            types = _element_types(parameter["dtypes"], is_rule=parameter["role"] == "result")
            yield f"{parameter['name']} ({parameter['role']}{optional}): {' '.join((*parameter['notes'], *types))}"


def _element_types(dtypes: Sequence[str], *, is_rule: bool) -> Iterator[str]:
    """Yield a sentence about the element types: the rule for a result, or the types that an input may have."""
    if dtypes:
        yield f"Element type: {' '.join(dtypes)}" if is_rule else f"Element types: {', '.join(dtypes)}."


def _python_lines(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the registration and the signature of an implementation in Python."""
    yield f'@vendor.implements("{record["function"]}")'
    yield record["python"]


def _related_lines(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line each for the other forms, the gradient and PyTorch's operators of a function, if it has any."""
    related = {
        "other forms": record["forms"],
        "gradient": [record["gradient"]] if record["gradient"] else [],
        "PyTorch": [f"aten::{operator}" for operator in record["aten"]],
    }
    return (f"{label}: {', '.join(names)}" for label, names in related.items() if names)


def _case_lines(cases: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yield a line with the number of cases of each level, in total and by class."""
    for level, by_class in cases.items():
        classes = ", ".join(f"{name} {number}" for name, number in sorted(by_class.items()))
        yield f"{level}: {sum(by_class.values())}{f' ({classes})' if classes else ''}"
