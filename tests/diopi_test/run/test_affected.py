"""A change affects the functions that depend on it, and nothing else is repeated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from case_records import case_record, report_of

from diopi_impl import find_vendor
from diopi_test.baseline.codec import from_json, to_json
from diopi_test.execution.verdict import Verdict
from diopi_test.results.log import LogRecord
from diopi_test.run.affected import AffectedCases, VendorVersion, dependent_functions
from diopi_test.run.options import RunOptions
from diopi_test.run.recorder import LogContent
from diopi_test.run.selection import Selection
from diopi_test.run.vendor_sources import SourceFiles, SourceModule, VendorSources

SOURCES = VendorSources(
    modules={
        "chip.activation": SourceModule(digest="1", imports=("chip.arithmetic",)),
        "chip.arithmetic": SourceModule(digest="2", imports=()),
    },
    functions={
        "diopiRelu": "chip.activation",
        "diopiAdd": "chip.arithmetic",
        "diopiAddInp": "chip.arithmetic",
    },
)


def test_forms_gradients_and_takers_of_results_depend_on_a_function() -> None:
    assert {"diopiSoftmax", "diopiSoftmaxBackward"} <= dependent_functions(["diopiSoftmax"])
    assert {"diopiAdd", "diopiAddInp", "diopiAddScalar", "diopiAddInpScalar"} <= dependent_functions(["diopiAddInp"])
    assert "diopiMaxPool2dBackward" in dependent_functions(["diopiMaxPool2dWithIndices"])
    assert "diopiMaxPool2dWithIndices" not in dependent_functions(["diopiMaxPool2dBackward"])
    assert dependent_functions([]) == frozenset()


def test_functions_of_the_same_module_and_of_modules_that_import_it_are_affected() -> None:
    affected = AffectedCases.by_functions(["diopiAddInp"], SOURCES)
    assert affected.functions is not None and {"diopiAdd", "diopiRelu", "diopiReluInp"} <= affected.functions
    of_relu = AffectedCases.by_functions(["diopiRelu"], SOURCES)
    assert of_relu.functions is not None and "diopiAdd" not in of_relu.functions
    assert Selection(affected=of_relu).words() == ["--affected-by", "diopiRelu"]
    assert Selection(affected=of_relu).wants_function("diopiRelu")
    assert not Selection(affected=of_relu).wants_function("diopiAdd")


def log_of(sources: VendorSources, digest: str = "") -> LogContent:
    """Return the log of a run with these sources of the vendor."""
    records = [
        case_record("diopiAdd[a]", "failed"),
        case_record("diopiRelu[a]", "passed"),
        case_record("diopiSin[a]", "not_run"),
    ]
    entries = [
        LogRecord("run", to_json(RunOptions(vendor="small").header("baseline"))),
        LogRecord("vendor", {"name": "small", "version": "1", **({"digest": digest} if digest else {})}),
        LogRecord("sources", to_json(sources)),
        LogRecord("due", [record.id for record in records]),
        *(LogRecord("case", to_json(record)) for record in records),
    ]
    return LogContent.from_records(entries, Path("log"))


def version(sources: VendorSources, library: str = "", baseline: str = "baseline") -> VendorVersion:
    """Return a version of the vendor."""
    return VendorVersion(library=library, baseline=baseline, sources=sources)


def change_sources(**digests: str) -> VendorSources:
    """Return sources of the vendor in which these modules have other digests."""
    modules = {
        f"chip.{name}": SourceModule(digest=digest, imports=SOURCES.modules[f"chip.{name}"].imports)
        for name, digest in digests.items()
    }
    return VendorSources(modules={**SOURCES.modules, **modules}, functions=SOURCES.functions)


ALL = {"diopiAdd[a]", "diopiRelu[a]", "diopiSin[a]"}


@pytest.mark.parametrize(
    ("now", "ids"),
    [
        (version(SOURCES), {"diopiSin[a]"}),
        (version(change_sources(activation="3")), {"diopiRelu[a]", "diopiSin[a]"}),
        (version(change_sources(arithmetic="3")), {"diopiAdd[a]", "diopiSin[a]"}),
        (version(SOURCES, baseline="new"), ALL),
        (replace(version(SOURCES), numerics="other"), ALL),
        (version(VendorSources()), ALL),
        (version(VendorSources(), library="new"), ALL),
    ],
)
def test_since_repeats_what_changes_can_affect_and_what_has_no_verdict(now: VendorVersion, ids: set[str]) -> None:
    assert AffectedCases.since(log_of(SOURCES), now).ids == ids


def test_an_unchanged_library_affects_nothing() -> None:
    affected = AffectedCases.since(log_of(VendorSources(), "same"), version(VendorSources(), library="same"))
    assert affected.ids == {"diopiSin[a]"}
    assert affected.wants("diopiSin", "diopiSin[a]") and not affected.wants_function("diopiAdd")
    done = replace(affected, ids=frozenset())
    assert Selection(affected=done).explain_empty([], []) == (
        "nothing is left to repeat, and every case has a verdict: the vendor's library is identical to that of the log"
    )


def test_a_module_digest_changes_with_the_modules_that_it_imports(tmp_path: Path) -> None:
    package = tmp_path / "chip"
    package.mkdir()
    for name, text in (
        ("__init__", "from chip import activation"),
        ("activation", "from .common import helper\nimport numpy"),
        ("common", "def helper(): ..."),
        ("norm", "import chip.activation"),
    ):
        (package / f"{name}.py").write_text(text)
    names = {"diopiRelu": "activation", "diopiBatchNorm": "norm"}
    sources = SourceFiles(
        files={f"chip.{name}": str(package / f"{name}.py") for name in names.values()},
        functions={function: f"chip.{name}" for function, name in names.items()},
    )
    before = VendorSources.read(sources)
    assert before.functions_that_depend_on("chip.activation") == {"diopiRelu", "diopiBatchNorm"}
    assert before.functions_that_depend_on("chip.norm") == {"diopiBatchNorm"}
    (package / "norm.py").write_text("import chip.activation\nx = 1")
    after = VendorSources.read(sources)
    assert after.functions_that_differ(before) == {"diopiBatchNorm"}
    (package / "common.py").write_text("def helper(): pass")
    assert VendorSources.read(sources).functions_that_differ(after) == {"diopiRelu", "diopiBatchNorm"}
    assert from_json(VendorSources, to_json(after)) == after


def test_the_sources_of_a_vendor_in_python_are_its_modules() -> None:
    sources = VendorSources.read(SourceFiles.from_vendor(find_vendor("jax_cpu")))
    assert sources.functions["diopiSoftmax"] == "diopi_impl.jax_cpu.activation"
    assert sources.functions["diopiConvolution2d"] == "diopi_impl.jax_cpu.conv"  # registered as a partial function
    assert "diopiConvolution2d" not in sources.functions_that_depend_on("diopi_impl.jax_cpu.activation")
    assert report_of([case_record("diopiAdd[a]", Verdict.passed)]).command.startswith("diopi-test run")
