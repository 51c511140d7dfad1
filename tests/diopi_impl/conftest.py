"""The compiled vendors of the tests, built once."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from shared_folders import fill_once
from toolchain import VENDORS, WARNINGS, build

from diopi_impl.export import export


@pytest.fixture(scope="session", autouse=True)
def exported_without_warnings() -> Iterator[None]:
    """Turn compiler warnings of exported libraries into errors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CC", " ".join((os.environ.get("CC", "cc"), *WARNINGS)))
        yield


@pytest.fixture(scope="session")
def c_vendor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a vendor in C that registers its functions."""
    sources = sorted((VENDORS / "c").glob("*.c"))
    name = "libdiopi_impl.so"
    return fill_once(tmp_path_factory, "c", lambda folder: build(folder / name, "c", sources, "-O1")) / name


@pytest.fixture(scope="session")
def cpp_vendor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a vendor in C++ that exports the well-known names."""
    sources = sorted((VENDORS / "cpp").glob("*.cpp"))
    name = "libdiopi_impl.so"
    return fill_once(tmp_path_factory, "cpp", lambda folder: build(folder / name, "c++", sources)) / name


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the built-in vendor as a library."""
    folder = fill_once(tmp_path_factory, "exported", lambda folder: export("diopi_impl.jax_cpu:vendor", folder))
    return folder / "libdiopi_impl.so"
