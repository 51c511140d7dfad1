"""Check the dependencies: diopi_proto ← lib_rt ← diopi_impl, and independent packages that build on these."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import takewhile
from pathlib import Path

import pytest
from sampling import sampled

ROOT = Path(__file__).parent.parent
FORBIDDEN = {
    "diopi_proto": {"lib_rt", "diopi_impl", "diopi_torch", "diopi_engine", "diopi_test", "jax", "torch"},
    "lib_rt": {"diopi_impl", "diopi_torch", "diopi_engine", "diopi_test", "jax", "torch"},
    "diopi_impl": {"diopi_torch", "diopi_engine", "diopi_test"},
    "diopi_torch": {"diopi_engine", "diopi_test", "jax"},
    "diopi_engine": {"diopi_torch", "diopi_test"},
    "diopi_engine/proto": {"lib_rt", "diopi_impl", "jax", "torch"},
    "diopi_test": {"diopi_torch", "diopi_engine", "torch"},
    "diopi_test/oracle/reference": {"jax", "torch", "diopi_impl", "ml_dtypes"},
    "diopi_test/oracle/validators": {"jax", "torch", "diopi_impl", "ml_dtypes"},
    "diopi_test/cases": {"jax", "torch", "diopi_impl"},
}
CHAPTERS = (
    "traces",
    "cases",
    "oracle",
    "baseline",
    "execution",
    "checks",
    "results",
    "waivers",
    "fingerprint",
    "run",
    "target",
    "reporting",
    "quality",
    "fuzz",
    "original",
    "device_runtime",
    "collectives",
    "cli",
)
"""The chapters of diopi_test in the order of a case's life. Each imports only earlier ones."""

TRACER = "diopi_test/traces/trace.py"
"""The only module of diopi_test that needs PyTorch. It is imported only when a program is traced."""

COMPARISON = "diopi_torch/compare"
"""The only part of diopi_torch that imports diopi_test. It is imported only when calls are compared or captured."""

NETWORKS = "diopi_engine/conformance/models"
"""The only part of diopi_engine that imports diopi_torch and diopi_test. It is imported only when libraries are
checked."""

READERS = ("store", "index_view", "manifest", "level")
"""Modules of the baseline that read stored cases. They need no reference."""

UNVERIFIED = {"diopi_test/baseline/manifest_writer.py"}
"""Modules that read a baseline file without a digest: those that enter the digest in the manifest."""

NEVER = {"pickle", "cPickle", "dill", "marshal", "shelve"}


@cache
def import_statements(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Return the import statements of a file, also those for type checking and within functions."""
    return tuple(node for node in nodes_of(path) if isinstance(node, ast.Import | ast.ImportFrom))


def nodes_of(path: Path, *words: str) -> Iterator[ast.AST]:
    """Yield the nodes of a file; none, without parsing it, if `words` are stated and the file contains none of them."""
    text = path.read_text("utf-8")
    if not words or any(word in text for word in words):
        yield from ast.walk(ast.parse(text))


def imports(path: Path) -> Iterator[str]:
    """Yield the top-level packages that a module imports."""
    for node in import_statements(path):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def project_imports(path: Path) -> Iterator[str]:
    """Yield the modules and names of diopi_test that a file imports, as dotted names without that of the package."""
    for node in import_statements(path):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "diopi_test":
            submodules = node.module.split(".")[1:]
            yield from (".".join([*submodules, alias.name]) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (a.name.partition(".")[2] for a in node.names if a.name.startswith("diopi_test."))


def modules(package: str) -> list[Path]:
    """Return the paths of the modules of a package."""
    found = sorted((ROOT / package).rglob("*.py"))
    assert found
    return found


@pytest.mark.parametrize(("package", "forbidden"), FORBIDDEN.items(), ids=list(FORBIDDEN))
def test_dependencies_point_one_way(package: str, forbidden: set[str]) -> None:
    seen = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(package)
        for name in imports(path)
        if name in forbidden
        and path != ROOT / TRACER
        and not (name == "diopi_test" and ROOT / COMPARISON in path.parents)
        and not (name in ("diopi_torch", "diopi_test") and ROOT / NETWORKS in path.parents)
    }
    assert seen == set()


def module_name(path: Path) -> str:
    """Return the dotted name of the module in a file."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imported_modules(path: Path, known: set[str]) -> Iterator[str]:
    """Yield the modules among `known` that `path` imports, also for type checking and within functions."""
    for node in import_statements(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            named = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if name in known else str(node.module) for name in named)


@pytest.mark.parametrize("package", ["diopi_proto", "lib_rt", "diopi_impl", "diopi_torch", "diopi_engine"])
def test_modules_of_a_package_import_one_way(package: str) -> None:
    paths = {module_name(path): path for path in modules(package)}
    graph = TopologicalSorter({name: set(imported_modules(path, set(paths))) for name, path in paths.items()})
    try:
        graph.prepare()
    except CycleError as error:
        pytest.fail(f"{package}: {' ← '.join(error.args[1])}")


PACKAGES = ("diopi_proto", "lib_rt", "diopi_impl", "diopi_torch", "diopi_engine", "diopi_test")


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_executes_data(package: str) -> None:
    for path in modules(package):
        assert not NEVER & set(imports(path)), path
        calls = [node for node in nodes_of(path, "eval", "exec") if isinstance(node, ast.Call)]
        assert not [c for c in calls if isinstance(c.func, ast.Name) and c.func.id in ("eval", "exec")], path


def test_the_suite_keeps_no_hidden_state() -> None:
    """Neither context variables nor replaced modules are used."""
    for path in modules("diopi_test"):
        assert "contextvars" not in set(imports(path)), path
        nodes = nodes_of(path, "modules")
        assert not [n for n in nodes if isinstance(n, ast.Attribute) and ast.unparse(n) == "sys.modules"], path


def test_only_the_vendor_may_use_jax() -> None:
    users = {path.relative_to(ROOT).as_posix() for path in modules("diopi_impl") if "jax" in set(imports(path))}
    assert users
    assert all(user.startswith("diopi_impl/jax_cpu/") for user in users)


def test_the_root_of_diopi_test_contains_only_chapters() -> None:
    files = {path.name for path in (ROOT / "diopi_test").glob("*.py")}
    folders = {path.parent.name for path in (ROOT / "diopi_test").glob("*/__init__.py")}
    assert files == {"__init__.py", "__main__.py"}
    assert folders == set(CHAPTERS)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_imports_only_earlier_chapters(chapter: str) -> None:
    allowed = set(CHAPTERS[: CHAPTERS.index(chapter) + 1])
    seen = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(f"diopi_test/{chapter}")
        for name in project_imports(path)
        if name.split(".")[0] not in allowed
    }
    assert seen == set()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_has_a_docstring(chapter: str) -> None:
    doc = ast.get_docstring(ast.parse((ROOT / "diopi_test" / chapter / "__init__.py").read_text("utf-8")))
    assert doc and len(doc.splitlines()) >= 3


@pytest.mark.parametrize("reader", sampled(READERS, 1))
def test_reading_a_stored_file_imports_no_reference(reader: str) -> None:
    code = f"import sys, diopi_test.baseline.{reader}; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert f"diopi_test.baseline.{reader}" in loaded
    light = {"diopi_test.oracle", "diopi_test.oracle.budget", "diopi_test.oracle.data", "diopi_test.oracle.records"}
    assert {name for name in loaded if name.startswith("diopi_test.oracle")} <= light
    assert "scipy" not in loaded


def test_validators_import_nothing_from_the_reference() -> None:
    seen = [(path, name) for path in modules("diopi_test/oracle/validators") for name in project_imports(path)]
    assert seen
    assert not [(path, name) for path, name in seen if name.startswith("oracle.reference")]


def test_every_reader_of_a_baseline_file_compares_its_digest() -> None:
    found = set()
    for path in sorted((ROOT / "diopi_test").rglob("*.py")):
        for node in nodes_of(path, "BaselineFile", "IndexView"):
            is_reader = isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("BaselineFile", "IndexView"))
            if is_reader and len(node.args) < 2:
                found.add(str(path.relative_to(ROOT)))
    assert found == UNVERIFIED


UNTYPED = ("diopi_impl/jax_cpu", "diopi_impl/torch_cpu", "diopi_test/oracle/reference")
"""Packages whose registered implementations have no annotations, because the prototypes have the types."""


def decorators(function: ast.FunctionDef) -> set[str]:
    """Return the names of the decorators of a function."""
    called = (node.func if isinstance(node, ast.Call) else node for node in function.decorator_list)
    return {node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "") for node in called}


@pytest.mark.parametrize("package", UNTYPED)
def test_only_registered_implementations_lack_annotations(package: str) -> None:
    functions = (
        (path, node) for path in modules(package) for node in nodes_of(path) if isinstance(node, ast.FunctionDef)
    )
    untyped = [
        f"{path.relative_to(ROOT)}: {function.name}"
        for path, function in functions
        if function.returns is None
        and not any(name.startswith(("implements", "reference")) for name in decorators(function))
    ]
    assert untyped == []


POSITIONAL = (
    "diopi_engine/proto",  # declarations that read like the C they declare
    "diopi_proto/ignored.py",
    "diopi_impl/jax_cpu/attention/core.py",  # JAX traces through named tuples, which have no keyword-only fields
)
"""Modules and packages whose records may be constructed by position."""

MAX_POSITIONAL_FIELDS = 3
"""The maximum number of fields of a record that may be constructed by position."""


def positional_fields(node: ast.ClassDef) -> list[str]:
    """Return the fields that a class declares itself and that its constructor takes by position."""
    fields = (statement for statement in node.body if isinstance(statement, ast.AnnAssign))
    return [
        ast.unparse(field.target)
        for field in takewhile(lambda field: ast.unparse(field.annotation) != "KW_ONLY", fields)
        if "kw_only=True" not in ast.unparse(field)
    ]


def allows_positional_fields(node: ast.ClassDef) -> bool:
    """Return whether a record may be constructed without keywords."""
    if any(ast.unparse(base) == "NamedTuple" for base in node.bases):
        return True
    decorators = [text for decorator in node.decorator_list if "dataclass" in (text := ast.unparse(decorator))]
    return bool(decorators) and "kw_only=True" not in decorators[0]


def test_records_with_more_than_three_fields_are_constructed_with_keywords() -> None:
    exempt = tuple(ROOT / part for part in POSITIONAL)
    positional = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for package in PACKAGES
        for path in modules(package)
        if not any(part in (path, *path.parents) for part in exempt)
        for node in nodes_of(path, "dataclass", "NamedTuple")
        if isinstance(node, ast.ClassDef)
        and allows_positional_fields(node)
        and len(positional_fields(node)) > MAX_POSITIONAL_FIELDS
    ]
    assert positional == []


CASES = ROOT / "diopi_test" / "cases"

MAX_CASE_NAMES = 80
"""The public names of the case model. A new name must replace others."""


def _case_names(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the names that a module imports from the modules of `diopi_test.cases` that are no families."""
    families = {entry.stem for entry in (ROOT / "diopi_proto" / "functions").iterdir()}
    own_part = path.relative_to(CASES).parts[0].removesuffix(".py") if path.is_relative_to(CASES) else ""
    for node in import_statements(path):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("diopi_test.cases."):
            part = (node.module or "").split(".")[2]
            if part not in families and part != own_part:
                yield from ((part, alias.name) for alias in node.names)


def test_the_case_model_has_few_public_names() -> None:
    modules = [path for folder in ("diopi_test", "diopi_torch") for path in (ROOT / folder).rglob("*.py")]
    used = {name for path in modules for name in _case_names(path)}
    assert len(used) <= MAX_CASE_NAMES, sorted(used)
