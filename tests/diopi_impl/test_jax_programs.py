"""Programs of jax_cpu: compilation for the CPU, a bounded cache that threads share, and unchanged JAX settings."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from diopi_impl.jax_cpu import programs
from diopi_impl.jax_cpu.programs import LARGE, ProgramCache
from diopi_impl.jax_cpu.whole_programs import _digest
from diopi_impl.program import FunctionProgram

PRELUDE = """
import os, sys
import numpy as np
import jax, jax.numpy as jnp
from diopi_proto.types import Dtype, Error, Scalar
from lib_rt import Context, Tensor

def add(vendor, device, shape, dtype=np.float32):
    with Context(device) as context:
        ones = np.ones(shape, dtype)
        out, one, other = (Tensor.from_numpy(context, array) for array in (0 * ones, ones, ones))
        code = vendor.call("diopiAdd", context, out, one, other, Scalar.from_number(1))
        assert code is Error.Success, vendor.last_error()
        assert (out.numpy() == 2).all()
"""

LEAVES_NO_TRACE = """
theirs = jax.jit(lambda x: x * 2 + jnp.arange(3))
before = dict(os.environ), theirs(np.arange(3)).dtype, theirs._cache_size()
from diopi_impl.jax_cpu import vendor
with vendor.open_device() as device:
    add(vendor, device, (3,), np.int64)
    add(vendor, device, (3,), np.float64)
assert (dict(os.environ), theirs(np.arange(3)).dtype, theirs._cache_size()) == before
assert theirs(np.arange(3.0)).dtype == np.float32
assert not jax.config.jax_enable_x64 and jnp.arange(3).dtype == np.int32
assert jax.config.jax_platforms is None and jax.config.jax_default_device is None
"""

MEMORY = """
from diopi_impl.jax_cpu import vendor

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20

with vendor.open_device() as device:
    for length in range(1, 51):
        add(vendor, device, (length,))
    before = resident()
    for length in range(51, 151):
        add(vendor, device, (length,))
    print(resident() - before)
"""

ANOTHER_DEVICE = """
from diopi_impl.jax_cpu.programs import LARGE, ProgramCache
first, second = jax.devices("cpu")
with jax.default_device(second):
    assert jnp.zeros(3).devices() == {second}
    for _ in range(2):
        assert ProgramCache().program("double", lambda: lambda arrays: 2 * arrays[0])([np.ones(3)]).devices() == {first}
"""


def run_in_new_process(script: str, **environment: str) -> str:
    """Run a Python script in a new process without inherited settings of JAX, and return its output."""
    command = [sys.executable, "-c", PRELUDE + script]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_"))}
    done = subprocess.run(command, capture_output=True, text=True, env={**inherited, **environment}, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_importing_opening_and_calling_change_no_jax_settings() -> None:
    run_in_new_process(LEAVES_NO_TRACE)


@pytest.mark.slow
def test_memory_is_flat_over_many_programs() -> None:
    assert float(run_in_new_process(MEMORY)) < 40  # each program takes one to two megabytes


def test_programs_run_on_the_cpu_whatever_the_default_device_is() -> None:
    run_in_new_process(ANOTHER_DEVICE, XLA_FLAGS="--xla_force_host_platform_device_count=2")


class RecordingProgramCache:
    """A cache of programs that add a number to an array, and the numbers whose programs were built."""

    def __init__(self) -> None:
        self.cache = ProgramCache()
        self.names: list[int] = []

    def add(self, number: int, array: np.ndarray[Any, Any]) -> Any:
        """Return the array plus the number, computed by the cached program of the number."""

        def build() -> Any:
            self.names.append(number)
            return lambda arrays: arrays[0] + number

        return np.asarray(self.cache.program(number, build)([array]))


def test_cache_drops_the_least_recently_used_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIOPI_JAX_PROGRAMS", "2")
    built = RecordingProgramCache()
    for number in (1, 2, 1, 3, 1, 2):
        built.add(number, np.zeros(2))
    assert built.names == [1, 2, 3, 2]


def test_cache_grows_when_a_dropped_program_is_requested_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DIOPI_JAX_PROGRAMS", raising=False)
    monkeypatch.setattr(programs, "MIN_PROGRAMS", 2)
    built = RecordingProgramCache()
    for _ in range(4):
        for number in range(5):
            built.add(number, np.zeros(2))
    assert built.names == [*range(5), 0, 1, 2], "the second time there is room for all, as long as two of them are left"


def test_cache_grows_no_further_than_memory_permits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DIOPI_JAX_PROGRAMS", raising=False)
    monkeypatch.setattr(programs, "MIN_PROGRAMS", 2)
    monkeypatch.setattr(programs, "_max_programs", lambda: 3)
    monkeypatch.setattr(programs, "MAX_DROPPED_KEYS", 2)
    built = RecordingProgramCache()
    for number in [*range(5)] * 3:
        built.add(number, np.zeros(2))
    assert len(built.cache._programs) <= 3 and len(built.cache._dropped_hashes) <= 2


def test_each_combination_of_types_and_shapes_has_its_program() -> None:
    built = RecordingProgramCache()
    for array in (np.zeros(2, np.float32), np.zeros(2), np.zeros(3), np.zeros(2, np.int64), np.zeros(2)):
        assert built.add(1, array).dtype == array.dtype
    assert len(built.names) == 4


def test_threads_share_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIOPI_JAX_PROGRAMS", "3")
    built, large = RecordingProgramCache(), 2**40

    def work(first: int) -> list[int]:
        return [int(built.add(number % 5, np.array([large]))[0]) for number in range(first, first + 40)]

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(4)))
    assert results == [[large + number % 5 for number in range(first, first + 40)] for first in range(4)]
    assert len(built.cache._programs) == 3


FAST_COMPILATION = programs._supported_options(programs._FAST_COMPILATION)  # so that no test sees the attempts


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that receives the options of each compilation; the environment sets none."""
    options: list[Any] = []
    compile_ = jax.stages.Lowered.compile

    def note(self: Any, compiler_options: Any = None) -> Any:
        options.append(compiler_options)
        return compile_(self, compiler_options)

    monkeypatch.setattr(jax.stages.Lowered, "compile", note)
    monkeypatch.delenv("DIOPI_JAX_OPTIMIZE", raising=False)
    return options


def test_programs_of_large_arguments_or_results_are_optimized(options: list[Any]) -> None:
    cache = ProgramCache()
    for elements in (LARGE, LARGE + 1):
        cache.program("argument", lambda: lambda arrays: arrays[0].sum())([np.zeros(elements)])
        cache.program(elements, lambda size=elements: lambda arrays: jnp.broadcast_to(arrays[0], size))([np.zeros(1)])
    assert options == [FAST_COMPILATION] * 2 + [{}] * 2


def test_the_environment_is_read_when_a_program_is_made(options: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    built = RecordingProgramCache()
    for number, (value, elements) in enumerate((("0", LARGE + 1), ("1", 1), ("auto", 1))):
        monkeypatch.setenv("DIOPI_JAX_OPTIMIZE", value)
        built.add(number, np.zeros(elements))
    assert options == [FAST_COMPILATION, {}, FAST_COMPILATION]


@pytest.mark.parametrize(
    ("shape", "axis", "by_xla"),
    [
        ((2, programs.LONG_ROWS), 0, True),
        ((2, programs.LONG_ROWS), 1, False),
        ((2, programs.LONG_ROWS), (0, 1), False),
        ((programs.LONG_ROWS, 2), 0, False),
        ((3, 2, programs.LONG_ROWS // 2, 2), 1, True),
    ],
)
def test_sums_of_long_rows_are_left_to_xla(options: list[Any], shape: tuple[int, ...], axis: Any, by_xla: bool) -> None:
    ones = np.ones(shape, np.float32)
    run = ProgramCache().program("a sum", lambda: lambda arrays: jnp.mean(arrays[0], axis), programs.PRODUCTS_BY_EIGEN)
    np.testing.assert_array_equal(np.asarray(run([ones])), ones.mean(axis))
    kinds = options[-1][programs.YNNPACK_OPTION].split(",")
    assert programs.CONVOLUTIONS in kinds
    assert (programs.SUMS in kinds) != by_xla


def test_unsupported_compiler_options_are_ignored(options: list[Any]) -> None:
    requested = {"xla_cpu_prefer_vector_width": "512", "xla_no_such_option": "1"}
    for elements in (1, LARGE + 1):
        ProgramCache().program("key", lambda: lambda arrays: arrays[0], requested)([np.zeros(elements)])
    assert options[0] == FAST_COMPILATION
    assert options[-1] == {"xla_cpu_prefer_vector_width": "512"}


def test_invalid_environment_variable_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIOPI_JAX_OPTIMIZE", "yes")
    with pytest.raises(ValueError, match="DIOPI_JAX_OPTIMIZE"):
        RecordingProgramCache().add(1, np.zeros(1))


def test_failed_program_is_not_cached() -> None:
    def build() -> Any:
        def fail(arrays: Any) -> Any:
            raise ValueError("as the call has it")

        return fail

    cache = ProgramCache()
    for _ in range(2):
        with pytest.raises(ValueError, match="call"):
            cache.program("key", build)([np.zeros(1)])
    assert not cache._programs


def test_programs_that_differ_in_one_element_of_a_long_constant_have_distinct_digests() -> None:
    """NumPy's text of an array of more than 1,000 elements omits those in the middle."""
    zeros = np.zeros(2000, np.float32)
    changed = zeros.copy()
    changed[1000] = 1
    digests = {
        _digest(FunctionProgram(inputs=0, constants={0: constant}, steps=(), outputs=[0]))
        for constant in (zeros, changed)
    }
    assert len(digests) == 2
