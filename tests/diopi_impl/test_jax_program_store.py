"""Stored programs of jax_cpu: equal results, damaged files, limits, and programs of sources that have changed."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from diopi_impl.jax_cpu import environment
from diopi_impl.jax_cpu.environment import digest_environment
from diopi_impl.jax_cpu.program_store import ProgramStore
from diopi_impl.jax_cpu.programs import ProgramCache

ROOT = Path(__file__).parents[2]

CALL_SIN = """
import sys, time
since = time.time()
from pathlib import Path
import numpy as np
from diopi_impl.jax_cpu import programs, vendor
from diopi_proto.types import Error
from lib_rt import Context, Tensor

def refuse(*_, **__):
    raise AssertionError("a program was compiled")

if sys.argv[2] == "warm":
    programs._compile = refuse
vendor.store_programs(Path(sys.argv[1]), since)
with vendor.open_device() as device, Context(device) as context:
    out, ones = (Tensor.from_numpy(context, np.ones(3, np.float32)) for _ in range(2))
    code = vendor.call("diopiSin", context, out, ones)
    assert code is Error.Success, vendor.last_error()
    print(out.numpy()[0])
"""

KEY = "diopiSin 1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder in which programs are stored."""
    return tmp_path / "programs"


def files(folder: Path) -> list[Path]:
    """Return the paths of all stored programs."""
    return sorted(folder.rglob("*.program"))


def build_never() -> Any:
    """Fail, because a stored program must not be built again."""
    raise AssertionError("the program is stored")


def run_and_store(folder: Path, function: Any, arrays: Any) -> Any:
    """Call a function with a store in the folder, and return its results."""
    cache = ProgramCache()
    cache.store = ProgramStore(folder, "environment")
    return cache.program("key", lambda: function, stored_as="function")(arrays)


def load_and_run(folder: Path, arrays: Any) -> Any:
    """Call the stored function, which must not be compiled, twice, and return its results."""
    cache = ProgramCache()
    cache.store = ProgramStore(folder, "environment")
    program = cache.program("key", build_never, stored_as="function")
    program(arrays)
    return program(arrays)


@pytest.mark.parametrize(
    ("function", "arrays"),
    [
        (lambda a: [a[0] * 2 + a[1]], [np.arange(6.0).reshape(2, 3), np.ones(3)]),
        (lambda a: [a[0].astype(jnp.int32), None, [a[0], a[0] > 1]], [np.arange(4, dtype=np.int64)]),
        (lambda a: [a[2] + 1], [np.ones(2, np.float32), np.ones(3, np.float32), np.ones(4, np.float16)]),
        (lambda a: [a[0] * a[1]], [np.ones(2, np.float32), 0.1]),
        (lambda a: [a[0] @ a[0].T, jnp.sort(a[0])], [np.arange(6, dtype=np.float32)[::-1].reshape(2, 3)]),
        (lambda a: [sum(a[0])], [[np.ones(2, np.float32), np.ones((), np.float32)]]),
        (lambda a: [a[0].astype(jnp.float32)], [np.ones((2, 0), jnp.bfloat16)]),
    ],
    ids=["64-bit", "nested", "unread", "number", "transposed", "list", "empty"],
)
def test_stored_program_returns_the_same_bits_without_compilation(folder: Path, function: Any, arrays: Any) -> None:
    compiled = run_and_store(folder, function, arrays)
    assert len(files(folder)) == 1
    loaded = load_and_run(folder, arrays)
    assert jax.tree.structure(loaded) == jax.tree.structure(compiled)
    for expected, actual in zip(jax.tree.leaves(compiled), jax.tree.leaves(loaded), strict=True):
        assert actual.dtype == expected.dtype
        assert np.asarray(actual).tobytes() == np.asarray(expected).tobytes()


def test_program_that_calls_lapack_is_not_stored(folder: Path) -> None:
    run_and_store(folder, lambda a: [jnp.linalg.cholesky(a[0])], [np.eye(3, dtype=np.float32)])
    assert not files(folder)


def test_program_with_large_results_is_not_stored(folder: Path) -> None:
    run_and_store(folder, lambda a: [jnp.full(2**24, a[0], jnp.int16)], [np.int16(1)])
    assert not files(folder)


@pytest.mark.parametrize("damage", [b"", b"DIOPI program 1\n", b"x" * 500])
def test_damaged_file_is_replaced(folder: Path, damage: bytes) -> None:
    arrays = [np.ones(3, np.float32)]
    run_and_store(folder, lambda a: [a[0] + 1], arrays)
    (file,) = files(folder)
    content = file.read_bytes()
    file.write_bytes(damage or content[:-1] + bytes([content[-1] ^ 1]))
    (result,) = run_and_store(folder, lambda a: [a[0] + 1], arrays)
    assert np.asarray(result).tolist() == [2, 2, 2]
    assert len(files(folder)) == 1
    assert np.asarray(load_and_run(folder, arrays)[0]).tolist() == [2, 2, 2]


def test_program_that_jax_can_not_load_is_compiled_and_replaced(folder: Path) -> None:
    store = ProgramStore(folder, "environment")
    key = "function " + repr([((3,), np.dtype("float32"))]).replace("[", "(").replace("]", ",)")
    store.write(key, b"\0\0\0\2{}no machine code")
    (result,) = run_and_store(folder, lambda a: [a[0] + 1], [np.ones(3, np.float32)])
    assert np.asarray(result).tolist() == [2, 2, 2]
    assert len(files(folder)) == 1
    load_and_run(folder, [np.ones(3, np.float32)])


def test_file_of_another_key_is_ignored(folder: Path) -> None:
    store = ProgramStore(folder, "environment")
    store.write(KEY, b"program")
    store.write("diopiCos 1", b"another program")
    first, second = files(folder)
    shutil.copy(first, second)
    assert sorted(filter(None, [store.read(KEY), store.read("diopiCos 1")])) in ([b"program"], [b"another program"])


def test_full_store_deletes_the_programs_that_were_not_used_for_the_longest_time(folder: Path) -> None:
    for number in range(10):
        ProgramStore(folder, f"environment {number}").write(KEY, os.urandom(1000))
    for age, file in enumerate(files(folder)):
        os.utime(file, (1000 - age, 1000 - age))
    assert ProgramStore(folder, "environment 9").read(KEY)  # which is the oldest, and is used now
    store = ProgramStore(folder, "new", max_bytes=8000)
    store.write(KEY, b"program")
    assert sum(file.stat().st_size for file in files(folder)) <= 4000 + 200
    assert store.read(KEY) == b"program"
    assert ProgramStore(folder, "environment 9").read(KEY)
    store.write("large", os.urandom(8000))  # there is no room for it
    assert store.read("large") is None


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows has no such rights")
def test_folder_that_others_may_write_to_is_not_used(folder: Path) -> None:
    store = ProgramStore(folder, "environment")
    store.write(KEY, b"program")
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    assert ProgramStore(folder, "environment").read(KEY) is None
    folder.chmod(0o700)
    link = folder.with_name("link")
    link.symlink_to(folder)
    assert ProgramStore(link, "environment").read(KEY) is None


def test_folder_that_can_not_be_created_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = ProgramStore(tmp_path / "file" / "programs", "environment")
    store.write(KEY, b"program")
    assert store.read(KEY) is None


def test_digest_depends_on_sources_and_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "source.py"
    source.write_text("a = 1")
    monkeypatch.setattr(environment, "_sources", lambda: [source])
    before = digest_environment(time.time() + 1)
    assert digest_environment(time.time() + 1) == before
    source.write_text("a = 2")
    changed = digest_environment(time.time() + 1)
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    assert len({before, changed, digest_environment(time.time() + 1)}) == 3


def test_sources_that_changed_after_the_import_turn_the_store_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source.py"
    monkeypatch.setattr(environment, "_sources", lambda: [source])
    source.write_text("a = 1")
    since = source.stat().st_ctime
    os.utime(source, (0, 0))  # as a tool does that restores the time of a file
    assert digest_environment(since) is None


@pytest.mark.slow
def test_changed_implementation_is_not_served_by_a_stored_program(tmp_path: Path) -> None:
    for package in ("diopi_proto", "lib_rt", "diopi_impl"):
        shutil.copytree(ROOT / package, tmp_path / package)
    assert call_sin(tmp_path, "cold") == pytest.approx(np.sin(1), abs=1e-6)
    assert call_sin(tmp_path, "warm") == pytest.approx(np.sin(1), abs=1e-6)
    source = tmp_path / "diopi_impl/jax_cpu/pointwise.py"
    changed = source.read_text("utf-8").replace("jnp.sin", "jnp.cos")
    assert "jnp.cos" in changed
    source.write_text(changed, "utf-8")
    assert call_sin(tmp_path, "cold") == pytest.approx(np.cos(1), abs=1e-6)


def call_sin(root: Path, state: str) -> float:
    """Return sin(1) according to jax_cpu with the sources in a folder, which must not compile if `state` is `warm`."""
    measuring = "COVERAGE_"  # variables that would measure the coverage of the copy, which is deleted before the report
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(measuring)}
    environment = {**inherited, "PYTHONPATH": str(root)}
    command = [sys.executable, "-c", CALL_SIN, str(root / "programs"), state]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=root)
    assert not done.returncode, done.stderr
    return float(done.stdout)
