"""The compiled vendor with faults that the environment specifies."""

from pathlib import Path

import pytest
from shared_folders import fill_once
from toolchain import VENDORS, build

NAME = "libdiopi_impl.so"

SOURCES = sorted((VENDORS / "faulty").glob("*.c"))


@pytest.fixture(scope="session")
def faulty_c(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the vendor in C."""
    return fill_once(tmp_path_factory, "faulty_c", lambda folder: build(folder / NAME, "c", SOURCES, "-O1")) / NAME


@pytest.fixture(scope="session")
def faulty_cpp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the same sources in C++, where they can throw exceptions."""
    return fill_once(tmp_path_factory, "faulty_cpp", lambda folder: build(folder / NAME, "c++", SOURCES, "-O1")) / NAME
