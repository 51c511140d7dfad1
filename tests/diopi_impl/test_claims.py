"""The claims of a vendor, in Python and in a file next to a compiled library."""

from __future__ import annotations

from pathlib import Path

import pytest
from toolchain import library

from diopi_impl import Claim, VendorError
from diopi_impl.claims import LAYOUTS, read_claims
from diopi_impl.native import NativeVendor
from diopi_proto.types import Dtype
from diopi_test.cases import layouts


def test_claim_covers_functions_dtypes_and_layouts() -> None:
    claim = Claim("diopiConv*2d", dtypes=[Dtype.float32], layouts=["contiguous", "channels_last"])
    assert claim.covers("diopiConvolution2d", Dtype.float32, ["channels_last"])
    assert claim.covers("diopiConvTranspose2d", Dtype.float32, ["contiguous", "channels_last"])
    assert not claim.covers("diopiConvolution3d", Dtype.float32, ["contiguous"])
    assert not claim.covers("diopiConvolution2d", Dtype.float64, ["contiguous"])
    assert not claim.covers("diopiConvolution2d", Dtype.float32, ["contiguous", "strided"])
    assert Claim("*").covers("diopiSin", Dtype.bool, ["expanded"])


def test_the_layouts_are_those_of_the_suite() -> None:
    assert tuple(layouts.LAYOUTS) == LAYOUTS


def test_invalid_claims_are_rejected() -> None:
    with pytest.raises(VendorError, match="'diopiSine'"):
        Claim("diopiSine")
    with pytest.raises(VendorError, match=r"'nhwc'.*contiguous, transposed"):
        Claim("diopiSin", layouts=["nhwc"])


FILE = """
[[claim]]
functions = "diopiSqrt*"
dtypes = ["float32", "bfloat16"]

[[claim]]
functions = "diopiNeg"
layouts = ["contiguous"]
"""


def test_compiled_vendor_reads_claims_from_a_file(tmp_path: Path) -> None:
    path = library(tmp_path, "int nothing;")
    assert NativeVendor(path).claims == ()
    path.with_name("libdiopi_impl.claims.toml").write_text(FILE)
    assert NativeVendor(path).claims == (
        Claim("diopiSqrt*", dtypes=(Dtype.float32, Dtype.bfloat16)),
        Claim("diopiNeg", layouts=["contiguous"]),
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[[claim]", "Expected"),
        ('[[claim]]\nfunctions = "diopiSine"', "matches no standard function"),
        ('[[claim]]\nfunctions = "diopiSin"\ndtypes = ["float31"]', "'float31' is missing or unknown"),
        ('[[claim]]\nfunction = "diopiSin"', "unexpected keyword argument 'function'"),
        ('[[claim]]\ndtypes = ["float32"]', "'functions'"),
        ('[[claims]]\nfunctions = "diopiSin"', "expected tables [[claim]], found 'claims'"),
    ],
)
def test_error_in_a_claims_file_names_the_file(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "my.claims.toml"
    path.write_text(text)
    with pytest.raises(VendorError) as caught:
        read_claims(path)
    assert str(caught.value).startswith(f"claims {path}: ")
    assert reason in str(caught.value)
