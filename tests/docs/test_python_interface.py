"""The page of the Python interface: it lists every public function, and its program runs."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scripts import load_script

import diopi_impl
from diopi_proto.interface import prototypes

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def interface() -> Any:
    """Return the module that writes the page, which is no part of a package."""
    return load_script(ROOT / "docs" / "hooks" / "python_interface.py")


def test_the_program_on_the_page_prints_what_the_page_says(interface: Any) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", interface.CALLING, re.DOTALL)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.startswith("Success [[0.0900")


def test_the_page_has_the_signature_of_every_plain_function(interface: Any) -> None:
    rows = re.findall(r"^\| \[(diopi\w+)\]", interface.python_page(), re.MULTILINE)
    assert rows == [p.name for p in prototypes().values() if p.base == p.name]


def test_the_page_describes_the_methods_with_which_a_vendor_is_written(interface: Any) -> None:
    page = interface.python_page()
    names = [name for name in vars(diopi_impl.Vendor) if not name.startswith("_")]
    assert [name for name in names if f"#### Vendor.{name}\n" not in page] == []
    assert "Vendor.implements(*names: str, adapt: Adapter | None=None) -> Callable[[F], F]" in page
    assert "object at 0x" not in page
