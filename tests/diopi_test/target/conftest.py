"""The runner, and compiled vendors for it, built once."""

import shutil
import subprocess
from pathlib import Path

import pytest
from runners import ROOT, build_runner, compile_object, run_quietly
from shared_folders import fill_once
from target_commands import Bundles, shared_bundles
from toolchain import VENDORS, build

from diopi_impl.export import export


@pytest.fixture(scope="session")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Bundles:
    """Return a function that returns the bundle of a selection of smoke cases."""
    return shared_bundles(tmp_path_factory)


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the runner."""
    return fill_once(tmp_path_factory, "runner", lambda folder: build_runner(folder / "diopi-runner")) / "diopi-runner"


@pytest.fixture(scope="session")
def runner_without_fork(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a runner for systems without `fork`."""

    def fill(folder: Path) -> Path:
        return build_runner(folder / "diopi-runner", "-DDIOPI_RUNNER_NO_FORK")

    return fill_once(tmp_path_factory, "runner_without_fork", fill) / "diopi-runner"


@pytest.fixture(scope="session")
def runner_without_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a runner that uses only standard input and output. It can load a library, unlike the one of CMake."""

    def fill(folder: Path) -> Path:
        return build_runner(folder / "diopi-runner", "-DDIOPI_RUNNER_NO_FORK", "-DDIOPI_RUNNER_NO_FILES")

    return fill_once(tmp_path_factory, "runner_without_files", fill) / "diopi-runner"


@pytest.fixture(scope="session")
def c_vendor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a vendor in C that registers its functions."""
    return _build_vendor(tmp_path_factory, "c")


@pytest.fixture(scope="session")
def faulty_vendor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the vendor in C with faults that the environment specifies."""
    return _build_vendor(tmp_path_factory, "faulty")


def _build_vendor(factory: pytest.TempPathFactory, name: str) -> Path:
    """Build the vendor from a folder of sources."""
    sources = sorted((VENDORS / name).glob("*.c"))
    library = "libdiopi_impl.so"
    return fill_once(factory, f"target_{name}", lambda folder: build(folder / library, "c", sources, "-O1")) / library


@pytest.fixture(scope="session")
def exported_vendor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the built-in vendor as a library."""
    folder = fill_once(tmp_path_factory, "exported", lambda folder: export("diopi_impl.jax_cpu:vendor", folder))
    return folder / "libdiopi_impl.so"


@pytest.fixture(scope="session")
def static_vendor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the vendor in C as a static library."""

    def fill(folder: Path) -> None:
        objects = [compile_object(source, folder) for source in sorted((VENDORS / "c").glob("*.c"))]
        subprocess.run(["ar", "rcs", str(folder / "libvendor.a"), *map(str, objects)], check=True)

    return fill_once(tmp_path_factory, "static_vendor", fill) / "libvendor.a"


@pytest.fixture(scope="session")
def static_runner(static_vendor: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a runner that contains the vendor in C, built by CMake without `fork` and threads."""
    return _build_static_runner(tmp_path_factory, static_vendor, "static_runner", "-DDIOPI_RUNNER_FORK=OFF")


@pytest.fixture(scope="session")
def bare_runner(static_vendor: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a runner that contains the vendor in C, built by CMake without `fork`, threads and files."""
    return _build_static_runner(tmp_path_factory, static_vendor, "bare_runner", "-DDIOPI_RUNNER_FILES=OFF")


def _build_static_runner(factory: pytest.TempPathFactory, vendor: Path, name: str, option: str) -> Path:
    """Build a runner with CMake, without threads, that contains a vendor; skip the test without CMake."""
    if shutil.which("cmake") is None:
        pytest.skip("there is no cmake here")

    def fill(folder: Path) -> None:
        options = [option, "-DDIOPI_RUNNER_THREADS=OFF", f"-DDIOPI_RUNNER_VENDOR={vendor}", "-DDIOPI_WERROR=ON"]
        run_quietly(["cmake", "-S", str(ROOT), "-B", str(folder), *options])
        run_quietly(["cmake", "--build", str(folder), "--target", "diopi-runner"])

    return fill_once(factory, name, fill) / "diopi-runner"
