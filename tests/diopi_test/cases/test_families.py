"""Families of cases that are packages, and templates registered for functions."""

from pathlib import Path

import pytest

import diopi_test.cases
from diopi_proto.families import families
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.baseline.dependencies import dependencies
from diopi_test.cases.axes import Axes
from diopi_test.cases.case import ResultOverride, TensorSpec, registered_cases
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.norm.affine import layer_template, register_layers
from diopi_test.cases.reduction.patterns import restrict_dtypes
from diopi_test.cases.selection import select_cases
from diopi_test.cases.template import ByDtype, CaseTemplate, expand, register, tensor

FOLDER = Path(diopi_test.cases.__file__).parent
FOLDERS = {path.parent.name for path in FOLDER.glob("*/__init__.py")}
PACKAGES = sorted(FOLDERS & set(families()))


def test_some_families_are_packages() -> None:
    assert "norm" in PACKAGES
    assert set(PACKAGES) == FOLDERS - {"selection"}  # the package that derives and selects cases


@pytest.mark.parametrize("family", PACKAGES)
def test_a_package_imports_all_its_modules(family: str) -> None:
    package = f"diopi_test.cases.{family}"
    modules = {f"{package}.{path.stem}" for path in (FOLDER / family).glob("*.py") if path.stem != "__init__"}
    assert modules <= dependencies(frozenset({package}))


def test_family_packages_are_loaded_like_modules() -> None:
    assert select_cases("diopiGroupNorm", "full")


def test_an_override_may_depend_on_the_element_type() -> None:
    out = ByDtype(lambda dtype: ResultOverride(dtype, transposed))
    template = CaseTemplate("a", arguments={"input": tensor(3)}, results={"out": out}, dtypes=(Dtype.float64,))
    (case,) = expand(lookup("diopiSum"), [template])
    assert case.results == {"out": ResultOverride(Dtype.float64, transposed)}


def test_registered_templates_are_the_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diopi_test.cases.case._makers", {})
    template = CaseTemplate("rows", arguments={"dim": (0,)}, dtypes=(Dtype.float16, Dtype.int8))
    register(
        "diopiSum",
        templates=[template],
        derive=lambda t, dtype: {"input": tensor(2)},
        non_discriminating={"rows": "why"},
    )
    cases = registered_cases(lookup("diopiSum"))
    assert [(case.label, case.non_discriminating) for case in cases] == [("float16-rows", "why"), ("int8-rows", "why")]
    assert list(cases[0].arguments) == ["input", "dim"]


def test_layer_template_sets_the_layout_of_tensors_and_first_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("diopi_test.cases.case._makers", {})
    template = layer_template("a", (2, 3), layout=strided, omitted_names=["bias"], eps=0.5)
    register_layers(
        "diopiGroupNorm", templates=[template], derive=lambda t, dtype: {"input": tensor(*t.sizes.shape), "eps": 0.0}
    )
    (case,) = registered_cases(lookup("diopiGroupNorm"))
    assert isinstance(case.arguments["input"], TensorSpec)
    assert case.arguments["input"].layout is strided
    assert case.arguments["eps"] == 0.5
    assert case.arguments["bias"] is None
    layouts = {name: result.layout.__name__ for name, result in case.results.items() if result}
    assert layouts == {"out": "strided", "save_mean": "contiguous", "save_invstd": "contiguous"}


@pytest.mark.parametrize(
    ("sizes", "reduced"),
    [
        (Axes((3, 4, 5), (-2,)), (3, 5)),
        (Axes((3, 4, 5), (0, 2), keepdim=True), (1, 4, 1)),
        (Axes((3, 4), ()), ()),
        (Axes((), (0,)), ()),
    ],
)
def test_reduced_shape_follows_axes_and_keepdim(sizes: Axes, reduced: tuple[int, ...]) -> None:
    assert sizes.reduced_shape == reduced


def test_all_dtypes_selects_every_type() -> None:
    types = (Dtype.float16, Dtype.float32)
    assert restrict_dtypes(Axes.template("a", (2,), (0,), all_dtypes=True), types).dtypes == types
    assert list(restrict_dtypes(Axes.template("a", (2,), (0,)), types).dtypes) == [Dtype.float32]
