"""The docstrings of classes document attributes that exist."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ("diopi_proto", "diopi_engine", "diopi_impl", "diopi_test", "diopi_torch", "benchmarks", "examples", "tests")


def classes_of(source: str) -> list[ast.ClassDef]:
    """Return the classes that a module defines."""
    if "class " not in source:  # most modules of references and of cases define none
        return []
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]


def documented_attributes(node: ast.ClassDef) -> list[str]:
    """Return the names in the section "Attributes" of a class's docstring."""
    section = re.search(r"^Attributes:\n((?:    .*\n?|\n)+)", ast.get_docstring(node) or "", re.MULTILINE)
    entries = re.findall(r"^    (\S[^:]*):", section[1], re.MULTILINE) if section else []
    return [name.strip() for entry in entries for name in entry.split(",")]


def own_attributes(node: ast.ClassDef) -> Iterator[str]:
    """Yield the names that a class defines: fields, class attributes, methods, and what methods assign to `self`."""
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.FunctionDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))
    for inner in ast.walk(node):
        match inner:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name


def attributes(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> set[str]:
    """Return the names that a class defines or inherits from one of the known classes."""
    bases = {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases} - {node.name}
    inherited = [attributes(classes[base], classes) for base in bases if base in classes]
    return {*own_attributes(node), *(name for names in inherited for name in names)}


def unknown_attributes(nodes: Sequence[ast.ClassDef], known: Mapping[str, ast.ClassDef]) -> list[tuple[str, str]]:
    """Return class and name of each attribute that a docstring documents although the module's class lacks it."""
    classes = {**known, **{node.name: node for node in nodes}}
    return [
        (node.name, name)
        for node in nodes
        if (documented := documented_attributes(node))
        for name in sorted({*documented} - attributes(node, classes))
    ]


def test_documented_attributes_exist() -> None:
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    nodes = {path: classes_of(path.read_text("utf-8")) for path in paths}
    classes = {node.name: node for module_nodes in nodes.values() for node in module_nodes}
    unknown = {str(path.relative_to(ROOT)): unknown_attributes(nodes[path], classes) for path in paths}
    assert {path: names for path, names in unknown.items() if names} == {}


def test_a_renamed_attribute_is_found() -> None:
    source = '''
class Base:
    value: int

class Box(Base):
    """A box.

    Attributes:
        value: The value.
        width, height: The sizes.
    """

    width: int

    def __init__(self) -> None:
        self.depth = 1
'''
    assert unknown_attributes(classes_of(source), {}) == [("Box", "height")]
