"""Finding vendors by registered name and `module:attribute`, and the errors if there is none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from diopi_impl import Vendor, VendorError, find_vendor, known_vendors, plugins

VENDOR = """
from diopi_impl import Vendor
from diopi_impl.host_runtime import HostRuntime

vendor = Vendor("found", "3", HostRuntime().functions())
number = 5
"""

MODULES = {
    "vendor_fine": VENDOR,
    "vendor_needs_more": "import a_module_that_is_not_there",
    "vendor_misspelt": "def broken(:",
    "vendor_breaks": "{}['chip']",
    "vendor_lacks": "import sys\nsys.chip",
}


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the modules in `MODULES` importable."""
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)


Register = Callable[[str], None]


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Register:
    """Return a function that registers `module:attribute` as the only vendor, with the name `chip`."""

    def registered(value: str) -> None:
        point = EntryPoint("chip", value, plugins.ENTRY_POINT_GROUP)
        monkeypatch.setattr(plugins, "entry_points", lambda group: [point] if group == point.group else [])

    return registered


def test_the_built_in_vendor_is_registered() -> None:
    assert "jax_cpu" in known_vendors()


def test_a_registered_vendor_is_found_by_name(register: Register) -> None:
    register("vendor_fine:vendor")
    vendor = find_vendor("chip")
    assert isinstance(vendor, Vendor)
    assert (vendor.name, vendor.version) == ("found", "3")
    assert list(known_vendors()) == ["chip"]


def test_a_vendor_is_found_by_module_and_attribute() -> None:
    vendor = find_vendor("vendor_fine:vendor")
    assert vendor.name == "found"
    assert find_vendor("vendor_fine:vendor") is vendor


MESSAGES = {
    "nobody": "vendor 'nobody' is not one of 'chip'. Pass a registered name, torch:DEVICE, jax:PLATFORM, "
    "module:attribute, or the path of a .so.",
    "": "vendor '' is not one of 'chip'. Pass a registered name, torch:DEVICE, jax:PLATFORM, module:attribute, or the "
    "path of a .so.",
    "no_module_of_this_name:vendor": "vendor no_module_of_this_name:vendor: module no_module_of_this_name can't be "
    "imported: No module named 'no_module_of_this_name'",
    "vendor_fine:other": "vendor vendor_fine:other: module vendor_fine has no attribute 'other'",
    "vendor_fine:": "vendor vendor_fine:: module vendor_fine has no attribute ''",
    "vendor_fine:number": "vendor vendor_fine:number is a int, expected a diopi_impl.",
    ":vendor": "vendor :vendor: module  can't be imported: ValueError: Empty module name",
    ".relative:vendor": "vendor .relative:vendor: module .relative can't be imported: TypeError: ",
    "vendor_needs_more:vendor": "vendor vendor_needs_more:vendor: module vendor_needs_more can't be imported: "
    "No module named 'a_module_that_is_not_there'",
    "vendor_misspelt:vendor": "vendor vendor_misspelt:vendor: module vendor_misspelt can't be imported: SyntaxError: ",
    "vendor_breaks:vendor": "vendor vendor_breaks:vendor: module vendor_breaks can't be imported: KeyError: 'chip'",
    "vendor_lacks:vendor": "vendor vendor_lacks:vendor: module vendor_lacks can't be imported: AttributeError: ",
}


@pytest.mark.parametrize("name", MESSAGES)
def test_missing_vendors_are_not_found(register: Register, name: str) -> None:
    register("vendor_fine:vendor")
    with pytest.raises(VendorError) as caught:
        find_vendor(name)
    assert str(caught.value).startswith(MESSAGES[name])


REGISTERED = {
    "no_module_of_this_name:vendor": "can't be loaded: No module named 'no_module_of_this_name'",
    "vendor_fine:other": "can't be loaded: AttributeError: module 'vendor_fine' has no attribute 'other'",
    "vendor_breaks:vendor": "can't be loaded: KeyError: 'chip'",
}


@pytest.mark.parametrize("value", REGISTERED)
def test_entry_point_that_fails_to_load_is_an_error(register: Register, value: str) -> None:
    register(value)
    with pytest.raises(VendorError) as caught:
        find_vendor("chip")
    assert str(caught.value) == f"vendor chip: {value} {REGISTERED[value]}"


def test_entry_point_of_another_type_is_rejected(register: Register) -> None:
    register("vendor_fine:number")
    with pytest.raises(VendorError, match="chip is a int"):
        find_vendor("chip")


def test_unknown_name_without_registered_vendors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "entry_points", lambda group: [])
    with pytest.raises(VendorError, match="'chip'"):
        find_vendor("chip")
