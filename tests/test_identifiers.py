"""Identifiers are nouns, verbs or predicates, and no two classes share a name.

A bare pronoun, preposition, participle or quantifier is not a name. `tests/identifiers.toml` lists the banned words,
the packages in which the rules apply, and the exceptions with their reasons.
"""

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RULES = tomllib.loads((Path(__file__).parent / "identifiers.toml").read_text("utf-8"))
BANNED = frozenset(RULES["banned"])
EXCEPTIONS = {(name, exception["file"]) for name, entries in RULES["exceptions"].items() for exception in entries}

PACKAGES = ("diopi_proto", "lib_rt", "diopi_impl", "diopi_test", "diopi_torch", "diopi_engine")
SHARED_CLASSES = RULES["shared_classes"]


def defined_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield every name that the module defines (functions, classes, parameters, variables, attributes) and its line."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.arg(arg=name):
                yield name, node.lineno
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno


def banned_names(source: str) -> list[tuple[str, int]]:
    """Return the banned names that the source code defines, with their lines; underscores and case do not count."""
    return [(name, line) for name, line in defined_names(ast.parse(source)) if name.strip("_").lower() in BANNED]


@pytest.mark.parametrize("folder", RULES["checked"])
def test_no_identifier_is_a_banned_word(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name, line in banned_names(path.read_text("utf-8"))
        if (name, str(path.relative_to(ROOT))) not in EXCEPTIONS
    ]
    assert found == []


def test_every_exception_is_needed_and_has_a_reason() -> None:
    for name, entries in RULES["exceptions"].items():
        for exception in entries:
            source = (ROOT / exception["file"]).read_text("utf-8")
            assert name in {banned for banned, _ in banned_names(source)}, exception
            assert exception["reason"]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def given(one, x): ...", ["given", "one"]),
        ("class Other:\n    def __init__(self):\n        self._kept = 1", ["Other", "_kept"]),
        ("for each in ():\n    total = [its for its in ()]", ["each", "its"]),
        ("x.own = lambda due: due", ["own", "due"]),
        ("def where_to_look(others_count): ...", []),
    ],
)
def test_banned_names_finds_every_kind_of_definition(source: str, names: list[str]) -> None:
    assert sorted(name for name, _ in banned_names(source)) == sorted(names)


def class_modules() -> dict[str, list[str]]:
    """Return the modules that define a class, by the name of the class, over all packages of the project."""
    modules = defaultdict(list)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            source = path.read_text("utf-8")
            for node in ast.walk(ast.parse(source)) if "class " in source else ():
                if isinstance(node, ast.ClassDef):
                    modules[node.name].append(str(path.relative_to(ROOT)))
    return modules


def test_no_two_classes_share_a_name() -> None:
    shared = {name: modules for name, modules in class_modules().items() if len(modules) > 1}
    assert shared == {name: sorted(exception["modules"], key=_package) for name, exception in SHARED_CLASSES.items()}
    assert all(exception["reason"] for exception in SHARED_CLASSES.values())


def _package(module: str) -> int:
    """Return the position of the package of a module."""
    return PACKAGES.index(module.split("/")[0])
