"""Dependencies point one way: diopi_proto ← lib_rt ← diopi_impl, diopi_test sees all, nothing sees diopi_test."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FORBIDDEN = {
    "diopi_proto": {"lib_rt", "diopi_impl", "diopi_test", "jax", "torch"},
    "lib_rt": {"diopi_impl", "diopi_test", "jax", "torch"},
    "diopi_impl": {"diopi_test"},
    "diopi_test": {"torch"},
    "diopi_test/reference": {"jax", "torch", "diopi_impl", "ml_dtypes"},
    "diopi_test/judges": {"jax", "torch", "diopi_impl", "ml_dtypes"},
    "diopi_test/cases": {"jax", "torch", "diopi_impl"},
}
NEVER = {"pickle", "cPickle", "dill", "marshal", "shelve"}


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def modules(package: str) -> list[Path]:
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
    }
    assert seen == set()


@pytest.mark.parametrize("package", ["diopi_proto", "lib_rt", "diopi_impl", "diopi_test"])
def test_nothing_executes_data(package: str) -> None:
    for path in modules(package):
        assert not NEVER & set(imports(path)), path
        calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
        assert not [c for c in calls if isinstance(c.func, ast.Name) and c.func.id in ("eval", "exec")], path


def test_only_the_vendor_may_use_jax() -> None:
    users = {path.relative_to(ROOT).as_posix() for path in modules("diopi_impl") if "jax" in set(imports(path))}
    assert users
    assert all(user.startswith("diopi_impl/jax_cpu/") for user in users)
