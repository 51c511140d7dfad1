"""Programs in C, C++ and Python, and several processes at a time, can use the library."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from c_programs import SOURCES, WARNINGS, environment
from host_process import build_host_process, changed_settings, is_ended_by_interrupt

import diopi_engine
from diopi_engine import Engine, Input
from diopi_engine.conformance.client import EngineClient, FailedCallError
from diopi_engine.proto import headers
from diopi_engine.proto.hgrt import DeviceAttribute, DevicePriority, Result
from diopi_engine.runtime.cores import Cores, retain
from diopi_engine.runtime.errors import InterfaceError

FREE = DeviceAttribute.FREE_CORE_COUNT

HOLDER = """
import sys
from pathlib import Path
from diopi_engine.runtime.cores import Cores, retain
print(retain(Cores(Path(sys.argv[1]), 0, 4), 3, 0), flush=True)
sys.stdin.read()
"""

SPLIT = """
import sys
from pathlib import Path
import numpy as np
from diopi_engine.conformance.client import EngineClient
from diopi_engine.proto.hgrt import CoreAllocPolicy
client = EngineClient(Path(sys.argv[1]))
context = client.context(client.engine(Path(sys.argv[2]).read_bytes()), CoreAllocPolicy.MAXIMUM)
assert client.get("hgDeviceGetAttribute", 0, 2) == 0
x, y = np.ones((9, 8), np.float32), np.zeros((9, 6), np.float32)
client.execute(context, 9, [x, y])
np.testing.assert_allclose(y, np.full((9, 6), 8 * 0.5 + 1), rtol=1e-6)
client.call("hgExecutionContextDestroy", context)
"""


MEMORY = """
import sys, time
from pathlib import Path
import numpy as np
from diopi_engine.conformance.client import EngineClient
client, data = EngineClient(Path(sys.argv[1])), Path(sys.argv[2]).read_bytes()
x, y = np.ones((1, 1024), np.float32), np.zeros((1, 8192), np.float32)

def resident():
    time.sleep(0.05)
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1])

for _ in range(6):
    engine = client.engine(data)
    context = client.context(engine)
    client.execute(context, 1, [x, y])
    client.call("hgExecutionContextDestroy", context)
    client.call("hgEngineDestroy", engine)
    print(min(resident() for _ in range(20)))  # threads of XLA may free their last buffers a moment later
"""


@pytest.mark.slow
@pytest.mark.parametrize(("compiler", "options"), [("cc", ["-std=c11"]), ("c++", ["-std=c++17", "-xc++"])])
def test_the_walkthrough_runs(
    compiler: str, options: list[str], library: Path, locks: Path, engine: Engine, tmp_path: Path
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} here")
    program, file = tmp_path / "walkthrough", tmp_path / "layer.engine"
    engine.save(file)
    sources = [str(SOURCES / "walkthrough.c"), "-xnone", str(library), f"-Wl,-rpath,{library.parent}"]
    command = [compiler, *options, *WARNINGS, f"-I{headers.INCLUDE_DIR}", *sources, "-o", str(program)]
    subprocess.run(command, check=True)
    records = tmp_path / "records"  # without the engine, whose network the embedded Python therefore verifies
    settings = environment(locks) | {"DIOPI_ENGINE_CACHE": str(records)}
    done = subprocess.run([program, file, "7"], env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len([*records.iterdir()]) == 1
    y, _ = engine(np.ones((7, 4), np.float32))
    assert done.stdout.splitlines() == [
        f"version 100, 2 devices of 4 cores with {256 << 20} bytes",
        "this is 0 layer: device 0, cores 0x1, 1 a batch",
        "batches of up to 64",
        "x: 28",
        f"y: {y.sum():g}",
    ]


def test_a_program_with_one_description_of_host_tensors_runs(
    library: Path, locks: Path, engine: Engine, tmp_path: Path
) -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler here")
    program, file = tmp_path / "host_tensors", tmp_path / "layer.engine"
    engine.save(file)
    source = Path(__file__).with_name("host_tensors.c")
    linked = [str(library), f"-Wl,-rpath,{library.parent}"]
    options = ["-std=c11", *WARNINGS, f"-I{headers.INCLUDE_DIR}", f"-I{SOURCES}"]
    subprocess.run(["cc", *options, str(source), *linked, "-o", str(program)], check=True)
    done = subprocess.run([program, file], env=environment(locks), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    y, _ = engine(np.ones((3, 4), np.float32))
    assert done.stdout.splitlines() == [f"system: {y.sum():g}", f"host: {y.sum():g}"]


def test_start_of_python_changes_no_setting_of_the_process(library: Path, locks: Path, tmp_path: Path) -> None:
    program = build_host_process(tmp_path)
    assert changed_settings(program, library, "hgRuntimeGetVersion") == []
    assert is_ended_by_interrupt(program, library, "hgRuntimeGetVersion")


def test_weights_are_split_over_cores(library: Path, locks: Path, tmp_path: Path) -> None:
    weights = {"a": np.full((8, 6), 0.5, np.float32), "b": np.ones(6, np.float32)}
    inputs = [Input("x", ("b", 8))]
    engine = diopi_engine.compile(
        lambda w, x: x @ w["a"] + w["b"], inputs, weights=weights, mode="weight_split", cores=2, patch=4
    )
    engine.save(tmp_path / "split.engine")
    command = [sys.executable, "-c", SPLIT, str(library), str(tmp_path / "split.engine")]
    done = subprocess.run(command, env=environment(locks), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_destroying_an_engine_frees_its_memory(library: Path, locks: Path, tmp_path: Path) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("the system does not state the memory of a process in /proc")
    weights = np.ones((1024, 8192), np.float32)
    diopi_engine.compile(lambda w, x: x @ w, [Input("x", ("b", 1024))], weights=weights).save(tmp_path / "engine")
    command = [sys.executable, "-c", MEMORY, str(library), str(tmp_path / "engine")]
    done = subprocess.run(command, env=environment(locks), capture_output=True, text=True, check=True)
    resident = [int(line) << 10 for line in done.stdout.split()]
    assert max(resident) - resident[0] < weights.nbytes / 2, resident


@contextmanager
def holder(locks: Path) -> Iterator[subprocess.Popen[str]]:
    """Start another process that retains three cores of device 0 until it ends."""
    command = [sys.executable, "-c", HOLDER, str(locks)]
    with subprocess.Popen(
        command, env=environment(locks), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "7\n"
        yield process
        process.kill()


def test_cores_stay_taken_if_the_folder_of_the_locks_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "locks"
    if not Path("/proc/locks").exists():
        pytest.skip("the system does not list locks in /proc/locks")
    cores = Cores(folder, 0, 4)
    with holder(folder) as process:
        shutil.rmtree(folder)
        assert Cores(folder, 0, 4).free == cores.free == 0b1000
        assert retain(cores, 1, 0) == 0b1000
        shutil.rmtree(folder)
        with pytest.raises(InterfaceError, match="0 of 4 are free"):
            retain(cores, 1, 0)
        process.kill()
        process.wait()
        assert retain(cores, 3, 0) == 0b0111


def test_cores_are_taken_machine_wide_and_freed_by_death(client: EngineClient, locks: Path, engine: Engine) -> None:
    with holder(locks) as process:
        assert client.get("hgDeviceGetAttribute", 0, FREE) == 1
        with pytest.raises(FailedCallError) as raised:
            client.get("hgDeviceRetain", 0, 2, DevicePriority.P0)
        assert raised.value.result is Result.ERROR_CORES_UNAVAILABLE
        handle = client.engine(engine.to_bytes())
        context = client.context(handle)
        assert client.get("hgDeviceGetAttribute", 0, FREE) == 0
        client.call("hgExecutionContextDestroy", context)
        client.call("hgEngineDestroy", handle)
        process.kill()
        process.wait()
        assert client.get("hgDeviceGetAttribute", 0, FREE) == 4
