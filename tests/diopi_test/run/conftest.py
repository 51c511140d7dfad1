"""The compiled vendor that goes wrong where it is told to."""

from pathlib import Path

import pytest
from toolchain import VENDORS, build

SOURCES = sorted((VENDORS / "faulty").glob("*.c"))


@pytest.fixture(scope="session")
def faulty_c(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In C."""
    return build(tmp_path_factory.mktemp("faulty_c") / "libdiopi_impl.so", "c", SOURCES, "-O1")


@pytest.fixture(scope="session")
def faulty_cpp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same sources in C++, where they can throw."""
    return build(tmp_path_factory.mktemp("faulty_cpp") / "libdiopi_impl.so", "c++", SOURCES, "-O1")
