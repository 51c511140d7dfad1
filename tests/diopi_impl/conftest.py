"""The compiled vendors of the tests, built once."""

from pathlib import Path

import pytest
from toolchain import VENDORS, build

from diopi_impl.export import export


@pytest.fixture(scope="session")
def c_vendor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vendor in C that registers its functions."""
    sources = sorted((VENDORS / "c").glob("*.c"))
    return build(tmp_path_factory.mktemp("c") / "libdiopi_impl.so", "c", sources, "-O1")


@pytest.fixture(scope="session")
def cpp_vendor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vendor in C++ that exports the well-known names."""
    sources = sorted((VENDORS / "cpp").glob("*.cpp"))
    return build(tmp_path_factory.mktemp("cpp") / "libdiopi_impl.so", "c++", sources)


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in vendor as a library."""
    return export("diopi_impl.jax_cpu:vendor", tmp_path_factory.mktemp("exported"))
