"""The page of the Python interface, generated from the docstrings of the classes and functions that users call."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import diopi_impl
import lib_rt
from diopi_impl.specs import ResultSpec
from diopi_proto import description
from diopi_proto.interface import prototypes

INTRODUCTION = """# The Python interface

This page lists the Python functions with which you write a vendor, and with which you call operators. A *vendor* is an
implementation of the operators. [Write a vendor in Python](../vendors.md) explains how the parts work together.
"""

CALLING = """The following program calls `diopiSoftmax` of the built-in vendor. The arguments follow the context in the
order of C, without the counts of arrays. Tensors are on the vendor's device until `numpy` copies them to the host:

```python
import numpy as np

from diopi_impl import find_vendor
from lib_rt import Context, Tensor

vendor = find_vendor("jax_cpu")
with vendor.open_device() as device, Context(device) as context:
    input = Tensor.from_numpy(context, np.float32([[1, 2, 3]]))
    out = Tensor.empty(context, input.shape, input.dtype)
    print(vendor.call("diopiSoftmax", context, out, input, 1).name, out.numpy())
```

It prints the error code `Success` and the result. `last_error` of the vendor returns the reason of any other code."""

SIGNATURES = """An implementation declares the parameters that it uses, by name and in any order. The table shows all
parameters that it may declare. In-place and scalar forms use the implementation of the plain function."""

WRITING: Mapping[str, Any] = {name: getattr(diopi_impl, name) for name in ("Vendor", "Waiver", "Claim", "Numerics")} | {
    "ResultSpec": ResultSpec
}
"""The classes with which users write a vendor."""

RUNNING: Mapping[str, Any] = {
    name: getattr(diopi_impl, name) for name in ("find_vendor", "known_vendors", "BaseVendor", "Box")
} | {name: getattr(lib_rt, name) for name in ("Device", "Context", "Stream", "Tensor", "Generator")}
"""The functions and classes with which users call operators."""

LISTED = ("Arguments", "Attributes", "Errors")
"""The sections with one entry per name."""

SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises):$")


def python_page() -> str:
    """Return the page in Markdown."""
    writing, running = (list(_entries(members)) for members in (WRITING, RUNNING))
    parts = [INTRODUCTION, "## Write a vendor\n", *writing, "## Call operators\n", CALLING, *running]
    return "\n\n".join((*parts, "## Signatures of implementations\n", SIGNATURES, _signatures()))


def _signatures() -> str:
    """Return a table with the signature of an implementation of each plain function."""
    rows = (
        f"| [{p.name}]({p.name}.md) | `{description.python_signature(p).removeprefix('def ').removesuffix(': ...')}` |"
        for p in prototypes().values()
        if p.base == p.name
    )
    return "\n".join(("| function | signature |", "| --- | --- |", *rows))


def _entries(members: Mapping[str, Any]) -> Iterator[str]:
    """Yield the descriptions of functions and classes, and of the public methods of the classes."""
    for name, member in members.items():
        yield f"### {name}\n\n{_described(member, f'{member.__module__}.{name}')}"
        if inspect.isclass(member):
            for attribute, value in vars(member).items():
                method = getattr(value, "__func__", value)
                if not attribute.startswith("_") and (inspect.isfunction(method) or isinstance(method, property)):
                    yield f"#### {name}.{attribute}\n\n{_described(method, f'{name}.{attribute}')}"


def _described(member: Any, name: str) -> str:
    """Return the signature and the docstring of a function, class or property."""
    kind = "class " if inspect.isclass(member) else ""
    signature = "" if isinstance(member, property) else _signature(member)
    return f"```python\n{kind}{name}{signature}\n```\n\n{_markdown(inspect.getdoc(member) or '')}"


def _signature(member: Any) -> str:
    """Return the parameters and the result of a function or class as in its source; long ones have several lines."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(member))).body
    parameters, result = _parameters(definition)
    arrow = f" -> {ast.unparse(result)}" if result else ""
    line = f"({', '.join(parameters)}){arrow}"
    return line if len(line) < 80 else "(\n    " + ",\n    ".join(parameters) + f"\n){arrow}"


def _parameters(definition: ast.stmt) -> tuple[list[str], ast.expr | None]:
    """Return the parameters of a function or class without `self`, and the annotation of the result."""
    if isinstance(definition, ast.ClassDef):
        for statement in definition.body:
            if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
                return _parameters(statement)[0], None
        fields = (statement for statement in definition.body if isinstance(statement, ast.AnnAssign))
        return ["*" if ast.unparse(entry.target) == "_" else _field(entry) for entry in fields], None
    assert isinstance(definition, ast.FunctionDef)
    arguments = definition.args
    arguments.args = [argument for argument in arguments.args if argument.arg not in ("self", "cls")]
    return _split(ast.unparse(arguments)), definition.returns


def _field(entry: ast.AnnAssign) -> str:
    """Return a field of a dataclass as a parameter; the default that `field` describes is not shown."""
    text = f"{ast.unparse(entry.target)}: {ast.unparse(entry.annotation)}"
    if entry.value is None:
        return text
    default = ast.unparse(entry.value)
    return f"{text} = {'...' if default.startswith('field(') else default}"


def _split(parameters: str) -> list[str]:
    """Return the parameters of a list, which are separated by the commas outside of brackets."""
    parts, depth = [""], 0
    for character in parameters:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _markdown(docstring: str) -> str:
    """Return a docstring in the Google convention as Markdown: the entries of its sections become lists."""
    lines, section = [], ""
    for line in docstring.splitlines():
        if heading := SECTION.match(line):
            section = {"Args": "Arguments", "Raises": "Errors"}.get(heading[1], heading[1])
            lines.append(f"\n**{section}**\n")
        elif section in LISTED and (entry := re.match(r"^ {4}([\w, .]+): (.*)$", line)):
            lines.append(f"- `{entry[1]}`: {entry[2]}")
        elif section and not line.startswith(" ") and line:
            section = ""
            lines.append(f"\n{line}")
        else:
            lines.append(line.strip() if section else line)
    return "\n".join(lines)
