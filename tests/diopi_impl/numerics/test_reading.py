"""Declarations in TOML files, next to compiled libraries, and in Python vendors."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from toolchain import library

from diopi_impl import IEEE, ErrorBound, Numerics, NumericsError, Vendor, VendorError, find_numerics
from diopi_impl.jax_cpu import vendor as jax_cpu
from diopi_impl.native import NativeVendor
from diopi_impl.numerics import read_numerics, shipped_names, shipped_numerics, to_toml

FILE = """
sources = ["the manual of the chip, section 3"]
float32_products = "tf32"
convolutions = ["direct", "winograd-f4"]
subnormals = "flush-results"
float64 = "absent"

[elementary]
exp = { ulp = 2 }
log = [
    { absolute = 1e-6, minimum = 0.5, maximum = 2 },
    { ulp = 3 },
]

[sum_order]
linalg = "run-to-run"
"""

DECLARED = Numerics(
    name="chip",
    sources=("the manual of the chip, section 3",),
    float32_products="tf32",
    convolutions=frozenset({"direct", "winograd-f4"}),
    subnormals="flush-results",
    float64="absent",
    elementary={
        "exp": (ErrorBound(ulp=2),),
        "log": (ErrorBound(absolute=1e-6, minimum=0.5, maximum=2), ErrorBound(ulp=3)),
    },
    sum_order={"linalg": "run-to-run"},
)


def test_file_declares_the_arithmetic(tmp_path: Path) -> None:
    path = tmp_path / "chip.toml"
    path.write_text(FILE)
    assert read_numerics(path) == find_numerics(str(path)) == DECLARED


def test_written_declaration_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "copy.toml"
    bound = ErrorBound(ulp=0.5, relative=1e-3, minimum=-math.inf, maximum=2e20)
    for numerics in (DECLARED, IEEE, Numerics(name='q"ü', elementary={"exp": (bound,)}), *map(find_numerics, NAMES)):
        path.write_text(to_toml(numerics))
        assert read_numerics(path) == numerics


NAMES = ("ieee", "ascend-hf32", "cuda-default", "fast-math", "tf32")


def test_declarations_that_ship_name_their_sources() -> None:
    assert shipped_names() == NAMES
    for name in NAMES:
        numerics = find_numerics(name)
        assert numerics.name == name
        assert numerics.sources
        assert numerics.is_ieee == (name == "ieee")
    assert shipped_numerics("ieee") == IEEE


def test_bounds_of_fast_math_contain_the_documented_bounds() -> None:
    elementary = shipped_numerics("fast-math").elementary
    for bound in elementary["exp"]:
        assert bound.ulp >= 2 + math.floor(1.173 * max(abs(bound.minimum), abs(bound.maximum)))
    assert min(bound.absolute for bound in elementary["sin"]) >= 2**-21.41
    assert min(bound.absolute for bound in elementary["cos"]) >= 2**-21.19
    for bound in elementary["tan"]:
        cosine = min(abs(math.cos(bound.minimum)), abs(math.cos(bound.maximum)))
        assert bound.absolute >= 2**-21.41 / cosine
        assert bound.relative >= 2**-21.19 / cosine
    assert elementary["tanh"] == (ErrorBound(relative=2**-11),)


@pytest.mark.parametrize("name", ["exp", "log", "sin", "cos"])
def test_ranges_of_fast_math_touch(name: str) -> None:
    bounds = shipped_numerics("fast-math").elementary[name]
    assert [bound.maximum for bound in bounds[:-1]] == [bound.minimum for bound in bounds[1:]]


def test_unknown_name_lists_the_names() -> None:
    with pytest.raises(NumericsError, match=r"'tf23' is not one of 'ieee', .*Did you mean 'tf32'\? .*\.toml"):
        find_numerics("tf23")


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        ("float64 =", ["the file is not valid TOML"]),
        ('float32_product = "tf32"', ["'float32_product' is not one of", "Did you mean 'float32_products'?"]),
        ('float64 = "none"', ["float64: expected one of 'ieee', 'absent', 'emulated', found 'none'"]),
        ("[elementary]\nexp = 2", ["elementary.exp: expected a table such as { ulp = 2 }, found 2"]),
        ("[elementary]\nexp = { ulps = 2 }", ["elementary.exp.ulps", "Did you mean 'ulp'?"]),
        ("[elementary]\nexp = [{ ulp = 2 }, { ulp = -1 }]", ["elementary.exp[1].ulp: expected", "found -1"]),
        ("[elementary]\nexpf = { ulp = 2 }", ["elementary: expected one of 'acos'", "found 'expf'"]),
        ("[elementary]\nexp = { relative = 0.5 }", ["elementary.exp.ulp, relative and absolute", "at most 0.1"]),
        ('name = "tf32"', ["'tf32' is the name of a declaration that ships with another arithmetic"]),
        ('name = "ieee"\nfloat64 = "absent"', ["name and float64"]),
        ('subnormals = "x"\nsigned_zeros = "y"', ["subnormals: expected", "signed_zeros: expected"]),
    ],
)
def test_error_in_a_file_names_the_file(tmp_path: Path, text: str, reasons: list[str]) -> None:
    path = tmp_path / "my.toml"
    path.write_text(text)
    with pytest.raises(NumericsError) as caught:
        read_numerics(path)
    message = str(caught.value)
    assert [line for line in message.splitlines() if not line.startswith(f"numerics {path}: ")] == []
    assert [reason for reason in reasons if reason not in message] == []


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NumericsError, match=r"absent\.toml"):
        find_numerics(str(tmp_path / "absent.toml"))


def test_compiled_vendor_reads_the_declaration_next_to_it(tmp_path: Path) -> None:
    path = library(tmp_path, "int nothing;")
    assert NativeVendor(path).numerics == IEEE
    declaration = path.with_name("libdiopi_impl.numerics.toml")
    declaration.write_text(f'name = "chip"\n{FILE}')
    assert NativeVendor(path).numerics == DECLARED
    declaration.write_text("float = 32")
    with pytest.raises(VendorError, match=r"libdiopi_impl\.numerics\.toml: float: field 'float' is not one of"):
        NativeVendor(path)


def test_python_vendor_declares_its_arithmetic() -> None:
    runtime = jax_cpu.runtime
    assert Vendor("chip", "1.0", runtime).numerics == IEEE
    assert Vendor("chip", "1.0", runtime, numerics=DECLARED).numerics == DECLARED
    with pytest.raises(NumericsError, match="vendor chip: name: 'tf32' is the name of a declaration that ships"):
        Vendor("chip", "1.0", runtime, numerics=Numerics(name="tf32", float64="absent"))
