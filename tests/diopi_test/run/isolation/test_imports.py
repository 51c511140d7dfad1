"""The fork server has imported everything before the first case, so that no case spends time on imports."""

import os
import subprocess
import sys
from collections.abc import Mapping

import pytest
from sampling import OPERATORS, draw_sample

from diopi_test.cases.selection import LEVELS
from diopi_test.run.options import RunOptions

_SERVER = """
import sys
from diopi_impl.native.library import prepare
from diopi_test.run.isolation.imports import import_validators, import_references
from diopi_test.run.isolation.fork_server_main import main  # imports what a worker needs

prepare()
import_validators()
"""

CASES_OF_ALL_FUNCTIONS = """
from diopi_impl import find_vendor
from diopi_test.baseline.level import open_level
from diopi_test.baseline.location import folder_to_read
from diopi_test.run.collection import collect_level
from diopi_test.run.options import CaseOptions
from diopi_test.run.target import LocalTarget
from diopi_test.run.session import Session

level = open_level(folder_to_read("smoke"))
vendor = find_vendor("diopi_test.quality.stub_vendor:vendor")
session = Session(LocalTarget(vendor, vendor.open_device()), CaseOptions(perf=True))
before = set(sys.modules)
first_cases = {case.function: case for case in reversed(collect_level(level))}
for function in sys.argv[1:]:
    session.run(level.path(function), first_cases[function])
"""

REFERENCES_OF_ALL_FUNCTIONS = """
from diopi_proto.interface import prototypes
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.cases.case import registered_cases

import_references()
before = set(sys.modules)
for function in sys.argv[1:]:
    prototype = prototypes()[function]
    for case in registered_cases(prototype)[:1]:
        compute_baseline_case(prototype, case)
"""

_NEW_MODULES = """
print(*sorted(set(sys.modules) - before), len(before) > 500)
"""


SAMPLE = [draw_sample(OPERATORS, 60), pytest.param(OPERATORS, marks=pytest.mark.exhaustive)]


@pytest.mark.parametrize("work", [CASES_OF_ALL_FUNCTIONS, REFERENCES_OF_ALL_FUNCTIONS], ids=["cases", "references"])
@pytest.mark.parametrize("functions", SAMPLE, ids=["sample", "all"])
def test_no_function_imports_a_module_when_it_runs(work: str, functions: list[str]) -> None:
    environment: Mapping[str, str] = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    words = [sys.executable, "-c", _SERVER + work + _NEW_MODULES, *functions]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True"]


def test_fork_server_imports_references_if_inputs_are_redrawn() -> None:
    generated = {name for name in LEVELS if RunOptions(vendor="any", level=name).execution.draws_inputs}
    assert {"large", "models"} <= generated
    assert not generated & {"smoke", "full"}
