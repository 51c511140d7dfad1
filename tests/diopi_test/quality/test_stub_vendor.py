"""The former module of the stub vendor still provides the vendor."""

import importlib

import pytest

from diopi_test.quality import stub_vendor


def test_former_module_warns_and_gives_the_stub_vendor() -> None:
    with pytest.warns(DeprecationWarning, match=r"stub_vendor:vendor"):
        module = importlib.import_module("diopi_test.quality.echo")
    assert module.vendor is stub_vendor.vendor
