"""Edits of Python modules as text: definitions at the end of a module, and names imported from other modules."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

LINE_LENGTH = 120
"""The maximum number of characters of a line of source code."""


def append_definition(source: str, definition: str, imports: Mapping[str, Sequence[str]]) -> str:
    """Return a module's source with a definition at its end, and with the names that the definition needs imported.

    Args:
        source: The source of the module.
        definition: The source of the definition.
        imports: The imported names by module.

    Returns:
        The new source.
    """
    for module, names in imports.items():
        source = import_names(source, module, names)
    return f"{source.rstrip()}\n\n\n{definition.strip()}\n"


def import_names(source: str, module: str, names: Sequence[str]) -> str:
    """Return a module's source with `from module import names`; an existing import of the module is extended.

    Args:
        source: The source of the module to edit.
        module: The name of the imported module.
        names: The names that it must import.
    """
    lines = source.splitlines(keepends=True)
    statements = [node for node in ast.parse(source).body if isinstance(node, ast.ImportFrom) and not node.level]
    existing = next((node for node in statements if node.module == module), None)
    if existing is None:
        first, end = (_insertion_line(ast.parse(source), statements, module),) * 2
        imported: list[ast.alias] = []
    else:
        first, end, imported = existing.lineno - 1, existing.end_lineno or existing.lineno, existing.names
    new_names = [name for name in names if name not in {alias.name for alias in imported}]
    if not new_names:
        return source
    new = _import_statement(module, [*map(ast.unparse, imported), *new_names])
    if existing is None and _starts_section(lines, first, statements, module):
        new = f"\n{new}"
    return "".join([*lines[:first], new, *lines[end:]])


def _insertion_line(tree: ast.Module, statements: Sequence[ast.ImportFrom], module: str) -> int:
    """Return the line before which an import of `module` keeps the imports of one section in alphabetical order.

    Args:
        tree: The syntax tree of the module to edit.
        statements: Its statements `from … import …`.
        module: The module to import.

    Returns:
        The number of the line, counted from 0.
    """
    section = [node for node in statements if _is_project_module(node.module or "") == _is_project_module(module)]
    later = [node for node in section if (node.module or "") > module]
    if later:
        return later[0].lineno - 1
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    last = (section or imports or tree.body)[-1 if section or imports else 0]
    return last.end_lineno or last.lineno


def _starts_section(lines: Sequence[str], first: int, statements: Sequence[ast.ImportFrom], module: str) -> bool:
    """Return whether a new import needs an empty line before it, because it is the first of its section.

    Args:
        lines: The lines of the module to edit.
        first: The number of the line before which the import is inserted, counted from 0.
        statements: The statements `from … import …` of the module.
        module: The module to import.
    """
    is_only = not any(_is_project_module(node.module or "") == _is_project_module(module) for node in statements)
    return is_only and first > 0 and bool(lines[first - 1].strip())


def _is_project_module(module: str) -> bool:
    """Return whether a module belongs to a package of this project."""
    return module.partition(".")[0].startswith(("diopi", "lib_rt"))


def _import_statement(module: str, names: Sequence[str]) -> str:
    """Return an import statement formatted like `ruff format` does."""
    in_order = sorted(names, key=lambda name: (not name.isupper(), not name[:1].isupper(), name))
    line = f"from {module} import {', '.join(in_order)}\n"
    if len(line) <= LINE_LENGTH + 1:
        return line
    return "".join([f"from {module} import (\n", *(f"    {name},\n" for name in in_order), ")\n"])
