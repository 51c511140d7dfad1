"""A scaffolded operator passes its checks once its author has filled in the formulas."""

import ast
import builtins
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from diopi_proto import headers
from diopi_proto.interface import lookup, prototypes
from diopi_test.cases.case import check_cases
from diopi_test.cli.new_operator import new_operator
from diopi_test.cli.refresh import refresh as refresh_command
from diopi_test.quality import generated_files
from diopi_test.quality.generated_files import refresh
from diopi_test.quality.scaffold import MARK, ScaffoldRequest, places_to_fill_in, scaffold
from diopi_test.quality.source_edits import import_names

ROOT = Path(__file__).parents[3]
PACKAGES = ("diopi_proto", "lib_rt", "diopi_impl", "diopi_test", "baseline_data")
HARDSIGMOID = ScaffoldRequest(name="diopiHardsigmoid", family="activation", aten="hardsigmoid")

FORMULAS = {
    "diopi_proto/functions/activation.py": {
        f"{MARK}: the result as a formula, the shapes and the errors.": "min(max(input + 3, 0), 6) / 6.",
        f"{MARK}: its formula.": "grad_output / 6 for −3 < input < 3, else 0.",
        f"{MARK}: its definition.": "torch.nn.functional.hardsigmoid and its gradient.",
    },
    "diopi_test/oracle/reference/activation.py": {
        f'raise NotImplementedError("{MARK}: compute diopiHardsigmoid in float64")': (
            "return np.minimum(np.maximum(input + 3, 0), 6) / 6"
        ),
        f'raise NotImplementedError("{MARK}: compute diopiHardsigmoidBackward in float64")': (
            "return np.where((input > -3) & (input < 3), grad_output / 6, 0)"
        ),
    },
    "diopi_impl/jax_cpu/activation.py": {
        f'raise NotImplementedError("{MARK}: compute diopiHardsigmoid with jax.numpy")': (
            "return jnp.clip(input + 3, 0, 6) / 6"
        ),
        f'raise NotImplementedError("{MARK}: compute diopiHardsigmoidBackward with jax.numpy")': (
            "return jnp.where((input > -3) & (input < 3), grad_output / 6, 0)"
        ),
    },
    "diopi_test/cases/activation.py": {
        f'"input": normal(), "grad_output": normal()}}  # {MARK}: values between the points where the function jumps': (
            '"input": avoid_points([-3, 3], uniform(-5, 5)), "grad_output": normal()}'
        ),
    },
}
"""What the author writes for each place to fill in, by file."""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of the source tree, with the built runtime."""
    ignored = shutil.ignore_patterns("__pycache__", "smoke")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    for name in ("build", "tests/diopi_proto/golden"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def run(clone: Path, *arguments: str) -> str:
    """Run a command of the suite in a copy of the repository and return its output."""
    measuring = "COVERAGE_"  # variables that would measure the coverage of the copy, too
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(measuring)}
    environment = {**inherited, "PYTHONPATH": str(clone)}
    command = [sys.executable, "-m", "diopi_test", *arguments]
    done = subprocess.run(command, cwd=clone, env=environment, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_scaffolded_operator_passes_its_checks_after_the_formulas_are_filled_in(clone: Path) -> None:
    listed = run(clone, "new-operator", "diopiHardsigmoid", "--family", "activation", "--aten", "hardsigmoid")
    files = set(re.findall(r"^  (\S+):\d+: ", listed, re.MULTILINE))
    assert files == set(FORMULAS)
    for name, formulas in FORMULAS.items():
        text = (clone / name).read_text("utf-8")
        for place, formula in formulas.items():
            assert place in text
            text = text.replace(place, formula)
        assert MARK not in text
        (clone / name).write_text(text, "utf-8")
    assert sum(map(len, FORMULAS.values())) <= 40

    assert "tests/diopi_proto/golden/interface.jsonl" in run(clone, "refresh")
    assert "diopiHardsigmoidInp" in (clone / "diopi_proto/include/diopi/functions.h").read_text("utf-8")
    assert f"Of the {len(prototypes()) + 3} functions" in (clone / "README.md").read_text("utf-8")

    data = str(clone / "data")
    run(clone, "gen-data", "-k", "diopiHardsigmoid", "--data", data)
    verdicts = run(clone, "run", "--strict", "-k", "diopiHardsigmoid", "--data", data, "-n", "1")
    assert re.search(r"jax_cpu \S+: \d+ passed in", verdicts)


def test_refresh_changes_only_files_that_are_out_of_date(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "INCLUDE_DIR", clone / "diopi_proto" / "include")
    monkeypatch.setattr(generated_files, "select_cases", lambda name, level: lookup(name).parameters)  # saves seconds
    monkeypatch.chdir(clone)
    (clone / "README.md").write_text("Of the 3 functions, some have an implementation in `jax_cpu`.", "utf-8")
    done = CliRunner().invoke(refresh_command, [])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines() == ["changed: README.md", "1 generated file changed"]
    assert f"Of the {len(prototypes())} functions" in (clone / "README.md").read_text("utf-8")

    golden = clone / "tests/diopi_proto/golden/interface.jsonl"
    golden.write_text(golden.read_text("utf-8").replace("mat2", "mat3"), "utf-8")
    assert CliRunner().invoke(refresh_command, []).exit_code == 2


def test_refresh_rejects_another_tree(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="refresh"):
        refresh(tmp_path)


def test_command_adds_an_operator_to_a_tree(clone: Path) -> None:
    arguments = ["diopiStep", "--family", "activation", "--no-gradient", "it is 0", "--tree", str(clone)]
    done = CliRunner().invoke(new_operator, arguments)
    assert done.exit_code == 0, done.output
    assert "def step(input):" in (clone / "diopi_impl/jax_cpu/activation.py").read_text("utf-8")
    assert CliRunner().invoke(new_operator, arguments).exit_code == 2


def test_copied_operator_keeps_parameters_and_facts() -> None:
    request = ScaffoldRequest(name="diopiHardshrink", family="activation", like="diopiThreshold")
    contents = {str(path.relative_to(ROOT)): text for path, text in scaffold(ROOT, request).items()}
    prototype = contents["diopi_proto/functions/activation.py"]
    assert 'inplace="diopiHardshrinkInp", backward="diopiHardshrinkBackward"' in prototype
    assert "def diopiHardshrink(ctx: Context, out: Out, input: In, threshold: ConvertedScalar" in prototype
    assert "def hardshrink_backward(grad_output, input, threshold):" in contents["diopi_impl/jax_cpu/activation.py"]


def test_reason_for_a_missing_gradient_is_part_of_the_prototype() -> None:
    request = ScaffoldRequest(name="diopiStep", family="activation", no_gradient="the slope is 0 wherever it exists")
    contents = scaffold(ROOT, request)
    prototype = next(text for path, text in contents.items() if path.match("diopi_proto/functions/*"))
    assert "There is no gradient: the slope is 0 wherever it exists." in prototype
    assert "diopiStepBackward" not in "".join(contents.values())


COPIED = ("diopiSigmoid", "diopiThreshold", "diopiSoftmax", "diopiAvgPool1d")
"""Functions to copy: without attributes, with numbers, with an axis, and one that is not element-wise."""


def contents_of_new_operator(like: str | None) -> dict[str, str]:
    """Return the new contents of the Python modules that a function like `like` changes, by path."""
    family = lookup(like).family if like else "activation"
    request = ScaffoldRequest(name="diopiHardsigmoid", family=family, like=like)
    contents = {str(path.relative_to(ROOT)): text for path, text in scaffold(ROOT, request).items()}
    return {path: text for path, text in contents.items() if path.endswith(".py")}


def namespace_of(tree: ast.Module) -> dict[str, Any]:
    """Return what a module's imports bind; raise AttributeError if a name does not exist."""
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module]
    return {
        alias.asname or alias.name: getattr(import_module(node.module or ""), alias.name)
        for node in imports
        for alias in node.names
    }


def new_functions(path: str, tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Yield the functions of a changed module that the module does not have yet."""
    existing = {node.name for node in ast.parse((ROOT / path).read_text("utf-8")).body if hasattr(node, "name")}
    yield from (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name not in existing)


def unbound_names(function: ast.FunctionDef, bound: set[str]) -> set[str]:
    """Return the names that a function reads, but neither binds itself nor finds among the bound names."""
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    arguments = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    definitions = {node.name for node in ast.walk(function) if isinstance(node, ast.FunctionDef)}
    assigned = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return {node.id for node in names} - assigned - arguments - definitions - bound - vars(builtins).keys()


@pytest.mark.parametrize("like", [None, *COPIED])
def test_scaffolded_modules_use_only_names_that_exist(like: str | None) -> None:
    for path, text in contents_of_new_operator(like).items():
        tree = ast.parse(text)
        bound = {*namespace_of(tree), *vars(import_module(path.removesuffix(".py").replace("/", ".")))}
        for function in new_functions(path, tree):
            assert unbound_names(function, bound) == set(), path


@pytest.mark.parametrize("like", COPIED)
def test_scaffolded_case_functions_yield_cases(like: str) -> None:
    path = f"diopi_test/cases/{lookup(like).family}.py"
    tree = ast.parse(contents_of_new_operator(like)[path])
    (function,) = new_functions(path, tree)
    function.decorator_list.clear()  # the function is not registered
    namespace = namespace_of(tree)
    exec(compile(ast.Module([function], []), path, "exec"), namespace)
    cases = list(namespace[function.name](lookup(like)))
    check_cases(lookup(like), cases)
    assert any(case.smoke for case in cases)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"name": "hardsigmoid"}, "hardsigmoid"),
        ({"name": "diopiSoftmax"}, "already"),
        ({"family": "activations"}, "activation"),
        ({"like": "diopiSoftmx"}, "diopiSoftmax"),
        ({"family": "attention"}, "--module"),
    ],
)
def test_invalid_requests_are_rejected(change: dict[str, str], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        scaffold(ROOT, replace(ScaffoldRequest(name="diopiHardsigmoid", family="activation"), **change))


def test_directory_that_is_no_source_tree_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="source tree"):
        scaffold(tmp_path, HARDSIGMOID)


def test_source_tree_has_no_place_left_to_fill_in() -> None:
    modules = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    contents = {path: path.read_text("utf-8") for path in modules if path.name != "scaffold.py"}
    assert list(places_to_fill_in(contents)) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from a import b\n", "from a import b, c\n"),
        ("import os\n\nfrom z import y\n", "import os\n\nfrom a import c\nfrom z import y\n"),
        ("from a import c\n", "from a import c\n"),
    ],
)
def test_imports_are_merged_in_order(source: str, expected: str) -> None:
    assert import_names(source, "a", ["c"]) == expected
