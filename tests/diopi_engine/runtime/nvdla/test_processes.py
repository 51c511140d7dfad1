"""Programs in C and C++ can use the library."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import diopi_engine
from diopi_engine import Engine, Input
from diopi_engine.proto import headers

WALKTHROUGH = Path(__file__).parents[4] / "examples" / "engine_nvdla" / "walkthrough.cpp"
TASKS, BUSY = (Path(__file__).with_name(name) for name in ("tasks.c", "busy.c"))
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic"]


UNIMPORTABLE = """
import ctypes, sys
sys.modules["diopi_engine"] = None
nvdla, hgrt = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(sys.argv[2])
result, text = ctypes.c_void_p(), ctypes.c_char_p()
print(nvdla.NvDlaInitialize(ctypes.byref(result)), nvdla._ZN5nvdla13createRuntimeB8documentEv())
print(hgrt.hgDeviceGetCount(ctypes.byref(result)), hgrt.hgGetLastErrorString(ctypes.byref(text)), text.value.decode())
"""

UNDESTROYED = """
import sys
from pathlib import Path
from diopi_engine.conformance.nvdla.bench import BoundNetwork
from diopi_engine.conformance.nvdla.client import NvdlaClient
runtime = NvdlaClient(Path(sys.argv[1])).create_runtime()
runtime.load(Path(sys.argv[2]).read_bytes())
bound = BoundNetwork(runtime)
runtime.call("submit")
print("submitted")
"""


def build_program(compiler: str, standard: str, source: Path, libraries: list[Path], program: Path) -> Path:
    """Build a program that is linked with libraries, and return its path."""
    linked = [option for library in libraries for option in (str(library), f"-Wl,-rpath,{library.parent}")]
    flags = [f"-std={standard}", *WARNINGS, "-pthread", f"-I{headers.INCLUDE_DIR}"]
    subprocess.run([compiler, *flags, str(source), *linked, "-o", str(program)], check=True)
    return program


def run(*command: object, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a program whose embedded Python finds the modules of this process."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **variables}
    texts = [str(argument) for argument in command]
    return subprocess.run(texts, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def walkthrough(nvdla_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the C++ program that makes the calls of the walkthrough, and return its path."""
    program = tmp_path_factory.mktemp("programs") / "walkthrough"
    return build_program("c++", "c++17", WALKTHROUGH, [nvdla_library], program)


def test_the_walkthrough_runs(walkthrough: Path, engine: Engine, tmp_path: Path) -> None:
    engine.save(tmp_path / "layer.engine")
    completed = run(walkthrough, tmp_path / "layer.engine", 7)
    assert (completed.returncode, completed.stderr) == (0, "")
    y, _ = engine(np.ones((7, 4), np.float32))
    assert completed.stdout.splitlines() == [
        "2 devices of at most 64",
        "batches of up to 16",
        "input x: 112 bytes, [7, 4]",
        "output y: 84 bytes, [7, 3]",
        "output z: 28 bytes, [7]",
        f"y: {y.sum():g}",
    ]


def test_cores_share_the_weights_of_a_network(walkthrough: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"weights": np.full((8, 6), 0.5, np.float32), "mode": "weight_split", "cores": 2}
    engine = diopi_engine.compile(lambda w, x: x @ w, [Input("x", (1, 8))], outputs=["y"], platforms=["cpu"], **options)
    engine.save(tmp_path / "split.engine")
    completed = run(walkthrough, tmp_path / "split.engine", 1)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert completed.stdout.splitlines()[-1] == f"y: {8 * 0.5 * 6:g}"


def test_the_class_uses_devices_through_the_exported_layer(walkthrough: Path, engine: Engine, tmp_path: Path) -> None:
    """A library that is loaded earlier replaces the exported functions.

    The program ends without destroying its runtime.
    """
    layer = tmp_path / "busy.so"
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{headers.INCLUDE_DIR}", str(BUSY), "-o", str(layer)], check=True)
    engine.save(tmp_path / "layer.engine")
    completed = run(walkthrough, tmp_path / "layer.engine", 7, LD_PRELOAD=str(layer))
    assert (completed.returncode, completed.stderr) == (1, "runtime.submit(): NvError 4\n")


def test_a_python_process_ends_with_its_runtime(nvdla_library: Path, engine: Engine, tmp_path: Path) -> None:
    engine.save(tmp_path / "layer.engine")
    completed = run(sys.executable, "-c", UNDESTROYED, nvdla_library, tmp_path / "layer.engine")
    assert (completed.returncode, completed.stdout, completed.stderr) == (0, "submitted\n", "")


def test_an_import_error_names_the_module(nvdla_library: Path, library: Path) -> None:
    completed = run(sys.executable, "-c", UNIMPORTABLE, nvdla_library, library, DIOPI_ENGINE_DEBUG="1")
    reason = "can't be imported: No module named 'diopi_engine.runtime'; 'diopi_engine' is not a package"
    assert completed.stderr.splitlines() == [f"the driver of NVDLA {reason}"] * 2
    assert completed.stdout.splitlines() == ["10 0", f"14 0 the runtime of HanGuangRT {reason}"]


def test_threads_of_a_c_program_use_both_libraries(
    nvdla_library: Path, library: Path, engine: Engine, tmp_path: Path
) -> None:
    program = build_program("cc", "c11", TASKS, [library, nvdla_library], tmp_path / "tasks")
    engine.save(tmp_path / "layer.engine")
    completed = run(program, tmp_path / "layer.engine")
    y, _ = engine(np.ones((2, 4), np.float32))
    assert (completed.returncode, completed.stderr) == (0, "")
    assert completed.stdout == f"2 {y.sum():g} {y.sum():g}\n"
