"""The collectives of the built-in device pass all cases, and a case detects each injected fault."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from collectives_mutants import MUTANTS, SOURCES
from device_runtime_mutants import RuntimeMutant, build_mutant, compile_objects
from sampling import draw_sample, sampled

from diopi_proto.collectives import FUNCTIONS
from diopi_proto.collectives.headers import C_SOURCE
from diopi_proto.headers import INCLUDE_DIR
from diopi_test.collectives.all_cases import CASES, LARGE_CASES
from diopi_test.collectives.run import run_collective_cases
from diopi_test.device_runtime.run import RuntimeOutcome
from diopi_test.execution.verdict import UNSUCCESSFUL, Verdict
from lib_rt.device_runtime import find_device_runtime

TIMEOUT = 120.0
EXAMPLE = Path(__file__).parents[3] / "examples" / "collectives" / "collectives.cpp"
DEFAULT_CASES = [name for name in CASES if name not in LARGE_CASES]

MUTANT_RUNS = 3
"""How often a case runs on a mutant until it detects the fault, because a fault of order can depend on chance."""

MUTANT_RANKS = 3
"""The number of ranks in the tests of mutants."""

MUTANT_TIMEOUT = 30.0
"""The maximum duration of a case in these tests, which some mutants exceed."""


def failures(library: Path, cases: Sequence[str], ranks: int) -> list[RuntimeOutcome]:
    """Run cases and return the outcomes of those that do not pass."""
    outcomes = run_collective_cases(library, cases, ranks, TIMEOUT)
    return [outcome for outcome in outcomes if outcome.verdict is not Verdict.passed]


def test_the_reference_passes_a_few_cases() -> None:
    assert failures(find_device_runtime(), draw_sample(DEFAULT_CASES, 20), 3) == []


@pytest.mark.slow
def test_the_reference_passes_the_cases_in_a_sample() -> None:
    combined = [name for name in DEFAULT_CASES if name.endswith("]")]
    remaining = [name for name in DEFAULT_CASES if name not in combined]
    assert failures(find_device_runtime(), [*draw_sample(combined, 40), *remaining], 4) == []


@pytest.mark.exhaustive
def test_the_reference_passes_all_cases() -> None:
    assert failures(find_device_runtime(), list(CASES), 4) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("ranks", [2, 3, 7])
def test_the_reference_passes_all_cases_with_other_numbers_of_ranks(ranks: int) -> None:
    assert failures(find_device_runtime(), DEFAULT_CASES, ranks) == []


@pytest.mark.exhaustive
def test_the_reference_passes_all_cases_over_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIOPI_COLLECTIVES_TRANSPORT", "tcp")
    assert failures(find_device_runtime(), DEFAULT_CASES, 4) == []


@pytest.mark.exhaustive
def test_one_rank_is_enough_for_most_cases() -> None:
    outcomes = failures(find_device_runtime(), DEFAULT_CASES, 1)
    assert {outcome.verdict for outcome in outcomes} == {Verdict.unsupported}
    assert {outcome.message for outcome in outcomes} == {"rank 0: needs 2 ranks; the run has 1"}


@pytest.mark.exhaustive
def test_a_vendor_in_cpp_passes_all_cases(tmp_path: Path) -> None:
    if shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler here")
    library, builtin = tmp_path / "vendor.so", find_device_runtime()
    sources = [str(EXAMPLE), str(INCLUDE_DIR / C_SOURCE)]
    options = ["-std=c++17", "-O1", "-shared", "-fPIC", f"-I{INCLUDE_DIR}", f"-I{EXAMPLE.parent}"]
    linked = ["-Wl,--no-as-needed", str(builtin), f"-Wl,-rpath,{builtin.parent}"]
    subprocess.run(["c++", *options, *sources, *linked, "-o", str(library)], check=True)
    assert failures(library, DEFAULT_CASES, 4) == []


def test_every_function_has_a_case() -> None:
    root = Path(INCLUDE_DIR).parents[1]
    sources = (*root.glob("diopi_test/collectives/*.py"), root / "lib_rt" / "collectives_client.py")
    texts = "".join(path.read_text("utf-8") for path in sources)
    assert all(f'"{function.name}"' in texts for function in FUNCTIONS)


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path]]:
    """Compile the sources of the collectives and the device runtime."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler here")
    yield compile_objects(tmp_path_factory.mktemp("objects"), SOURCES)


@pytest.mark.parametrize("mutant", sampled(MUTANTS, 1, slow=2), ids=lambda mutant: mutant.name)
def test_a_case_detects_each_fault(mutant: RuntimeMutant, objects: list[Path], tmp_path: Path) -> None:
    library = build_mutant(mutant, objects, tmp_path, SOURCES)
    for _ in range(MUTANT_RUNS):
        [outcome] = run_collective_cases(library, [mutant.detected_by], MUTANT_RANKS, MUTANT_TIMEOUT)
        if outcome.verdict in UNSUCCESSFUL:
            break
    assert outcome.verdict in UNSUCCESSFUL, outcome
    assert outcome.message


def test_mutants_of_collectives_have_distinct_names_edits_that_apply_and_existing_cases() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) > 70
    assert {mutant.detected_by for mutant in MUTANTS} <= set(CASES)
    assert all(mutant.edited_source(SOURCES) for mutant in MUTANTS)
