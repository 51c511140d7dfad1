"""The collectives under the compiler's sanitizers: cases of order and failures cause no data race or memory error."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
import sanitizers
from collectives_mutants import SOURCES
from sanitizers import ADDRESS, THREAD
from toolchain import build

from diopi_proto.headers import INCLUDE_DIR
from diopi_test.collectives.all_cases import CASES
from diopi_test.collectives.run import run_collective_cases
from diopi_test.execution.verdict import Verdict

pytestmark = pytest.mark.sanitizers

MODULES = ("order_cases", "communicator_cases", "failure_cases")
"""The modules whose cases use several threads or communicators, or end calls early."""

FURTHER = ["diclAllToAllUnequalSplit_moves[int16]", "diclReduceScatter_combines[complex64-PRODUCT]"]


def choose_cases() -> list[str]:
    """Return the names of the cases."""
    return [name for name, case in CASES.items() if getattr(case, "__module__", "").endswith(MODULES)] + FURTHER


@pytest.mark.parametrize(
    ("runtime", "flags", "options"),
    [
        ("libtsan.so", THREAD, {"TSAN_OPTIONS": "halt_on_error=1"}),
        ("libasan.so", ADDRESS, sanitizers.LEAKS_OF_PYTHON),
    ],
)
def test_collectives_have_no_races_and_memory_errors(
    runtime: str, flags: Sequence[str], options: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sanitizers.require(flags)
    found = subprocess.run(["cc", f"-print-file-name={runtime}"], capture_output=True, text=True, check=True)
    preloaded = Path(found.stdout.strip())
    if not preloaded.is_absolute():
        pytest.skip(f"cc has no {runtime} that could be loaded before Python")
    library = build(
        tmp_path / "collectives.so",
        "c",
        SOURCES,
        *flags,
        f"-I{INCLUDE_DIR}",
        f"-I{SOURCES[0].parent}",
        "-shared",
        "-fPIC",
    )
    monkeypatch.setenv("LD_PRELOAD", str(preloaded.resolve()))
    for name, value in options.items():
        monkeypatch.setenv(name, value)
    cases = choose_cases()
    assert len(cases) > 20
    outcomes = list(run_collective_cases(library, cases, 3, 120.0))
    assert [outcome for outcome in outcomes if outcome.verdict is not Verdict.passed] == []
