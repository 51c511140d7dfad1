"""Write bundles, run them with `diopi-runner`, and evaluate the results, as users do."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import commands
import pytest
from hostile import BASELINE
from reports import read_report
from shared_folders import fill_once

FUNCTIONS_IN_C = (
    *("diopiAbs", "diopiAbsInp", "diopiAdd", "diopiArgmax", "diopiCat", "diopiClipGradNorm", "diopiDiv", "diopiEqual"),
    *("diopiGelu", "diopiMSELoss", "diopiNonzero", "diopiNormal", "diopiSpMM", "diopiSplitWithSizes", "diopiSort"),
    "diopiSum",
)
"""The functions of the vendor in C, with every kind of argument and result, and one that it lacks."""


def diopi_test(*words: object, folder: Path, status: int | None = None, **variables: str) -> str:
    """Run `diopi-test` with its state in a folder, and return the output; assert the exit status unless it is None."""
    result = commands.run_here(*words, XDG_STATE_HOME=str(folder), **variables)
    assert status is None or result.returncode == status, result.stdout + result.stderr
    return result.stdout + result.stderr


def bundle(folder: Path, *words: object) -> Path:
    """Return the path of a bundle of the selected smoke cases; `words` are further options."""
    path = folder / "cases.diopi"
    diopi_test("bundle", "--data", BASELINE, "--output", path, *words, folder=folder, status=0)
    return path


COMPARED = ("verdict", "message", "checks", "error_code")
"""The fields of a case that must be equal. Others depend on the machine, such as the duration."""

NOT_ON_TARGETS = ("runtime[", "diopiTensorDestructionHook[")
"""The beginnings of the IDs of cases that no runner can run; docs/targets.md explains why."""

COMPARED_OF_CAUSES = ("id", "severity", "sentence", "counts", "cases", "functions", "smallest_case", "diagnosis")
"""The fields of a cause that must be equal. Others contain the path of the vendor."""


class Bundles(Protocol):
    """A function that returns the bundle of a selection of smoke cases."""

    def __call__(self, *words: str) -> Path:
        """Return the bundle of the cases that these options select. Tests must not change the file."""
        ...


def shared_bundles(factory: pytest.TempPathFactory) -> Bundles:
    """Return a function that writes the bundle of each selection once per session."""

    def shared(*words: str) -> Path:
        digest = hashlib.sha256("\n".join(words).encode()).hexdigest()
        return fill_once(factory, f"bundle_{digest[:16]}", lambda folder: bundle(folder, *words)) / "cases.diopi"

    return shared


def run_runner(runner: Path, *words: object, status: int | None = 0, **variables: str) -> str:
    """Run the runner, and return what it prints; assert the exit status unless it is None."""
    process = subprocess.run(
        [str(runner), *map(str, words)],
        capture_output=True,
        text=True,
        timeout=1800,
        env={**os.environ, **variables},
    )
    assert status is None or process.returncode == status, (process.returncode, process.stdout + process.stderr)
    return process.stdout + process.stderr


def evaluate(folder: Path, cases: Path, results: Path, *words: object) -> Mapping[str, Mapping[str, Any]]:
    """Return the cases of the report of the evaluation, by ID."""
    report = folder / "evaluated.json"
    diopi_test("evaluate", cases, results, "--data", BASELINE, "--json", report, "-n", 1, *words, folder=folder)
    return {case["id"]: case for case in read_report(report)["cases"]}


def run_here(folder: Path, vendor: Path, *words: object, **variables: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the cases of the report of a run on this machine, by ID."""
    report = folder / "direct.json"
    selected = ("--vendor", vendor, "--data", BASELINE, "--json", report, "-n", 1, *words)
    diopi_test("run", *selected, folder=folder, **variables)
    return {case["id"]: case for case in read_report(report)["cases"]}


def select(functions: Sequence[str]) -> list[str]:
    """Return the options that select the cases of functions."""
    return [word for function in functions for word in ("--function", function)]


def without_output(message: str) -> str:
    """Return a message without the output of the vendor's process, which a target does not record."""
    return message.partition("; its output: ")[0]


def compare_findings(folder: Path, fields: Sequence[str] = COMPARED) -> None:
    """Fail if a case or a cause differs between the last reports of `run_here` and of `evaluate` in a folder.

    Cases that no runner can run must have the verdict `not_run`, unless the vendor does not implement their function.

    Args:
        folder: The folder.
        fields: The fields of a case that must be equal.
    """
    direct, evaluated = (read_report(folder / name) for name in ("direct.json", "evaluated.json"))
    cases, evaluated_cases = ({case["id"]: case for case in report["cases"]} for report in (direct, evaluated))
    assert cases.keys() == evaluated_cases.keys()
    for name, case in cases.items():
        if name.startswith(NOT_ON_TARGETS):
            assert evaluated_cases[name]["verdict"] in ("not_run", "not_implemented"), name
            continue
        expected = {**case, "message": without_output(case["message"])}
        assert {key: expected.get(key) for key in fields} == {key: evaluated_cases[name].get(key) for key in fields}, (
            name
        )
    assert describe_causes(direct) == describe_causes(evaluated)


def describe_causes(report: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the fields of the causes of a report that do not depend on the path of the vendor."""
    causes = [{key: cause.get(key) for key in COMPARED_OF_CAUSES} for cause in report.get("causes", ())]
    return [{**cause, "sentence": without_output(cause["sentence"])} for cause in causes]
