"""The runner, and compiled vendors for it, built once."""

import shutil
import subprocess
from pathlib import Path

import pytest
from runners import ROOT, build_runner, compile_object, run_quietly
from shared_folders import fill_once
from target_commands import Bundles, shared_bundles
from toolchain import VENDORS, build


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
def board_vendor(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a runner that contains the vendor in C, built by CMake without `fork` and threads, and its folder."""
    if shutil.which("cmake") is None:
        pytest.skip("there is no cmake here")

    def fill(folder: Path) -> None:
        objects = [compile_object(source, folder) for source in sorted((VENDORS / "c").glob("*.c"))]
        subprocess.run(["ar", "rcs", str(folder / "libvendor.a"), *map(str, objects)], check=True)
        options = ["-DDIOPI_RUNNER_FORK=OFF", "-DDIOPI_RUNNER_THREADS=OFF"]
        options += [f"-DDIOPI_RUNNER_VENDOR={folder / 'libvendor.a'}", "-DDIOPI_WERROR=ON"]
        run_quietly(["cmake", "-S", str(ROOT), "-B", str(folder / "build"), *options])
        run_quietly(["cmake", "--build", str(folder / "build"), "--target", "diopi-runner"])

    folder = fill_once(tmp_path_factory, "board", fill)
    return folder / "build" / "diopi-runner", folder
