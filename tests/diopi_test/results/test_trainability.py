"""The networks that a vendor can train, as the report lists them."""

import io
from collections.abc import Iterator

import pytest
from case_records import case_record
from rich.console import Console

from diopi_impl import find_vendor
from diopi_proto.interface import lookup
from diopi_test.baseline.codec import from_json, to_json
from diopi_test.cases.selection.traced import model_cases
from diopi_test.execution.verdict import Verdict
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.results.records import CaseRecord, ModelReport
from diopi_test.results.trainability import model_reports, show_models
from diopi_test.run.run_case import run_case
from diopi_test.traces.files import shipped_calls

TRAINED, UNSERVED = "ncf", "mixtral"
LEVEL = "models-ncf"


def network_cases(name: str, **verdicts: Verdict) -> Iterator[CaseRecord]:
    """Return the cases of a network, all passed except for the first case of each of these functions."""
    for function, labels in shipped_calls(name).items():
        for number, label in enumerate(labels):
            verdict = verdicts.get(function, Verdict.passed) if number == 0 else Verdict.passed
            if verdict is not Verdict.not_run:
                yield case_record(f"{function}[{label}]", verdict)


def only_report(cases: Iterator[CaseRecord], level: str = LEVEL) -> ModelReport:
    """Return the report of the only network."""
    (report,) = model_reports(level, cases)
    return report


def shown_text(*models: ModelReport) -> str:
    """Return the text that is printed for models."""
    console = Console(file=io.StringIO(), width=100)
    show_models(models, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_network_whose_calls_pass_can_be_trained() -> None:
    report = only_report(network_cases(TRAINED, diopiMul=Verdict.waived))
    assert report.trains
    assert (report.name, report.passed, report.failures) == (TRAINED, report.calls, {})
    assert shown_text(report) == "models: 1 of 1 can be trained\n"


@pytest.mark.parametrize("verdict", [Verdict.failed, Verdict.crashed, Verdict.not_implemented, Verdict.unsupported])
def test_one_failed_call_makes_a_network_fail(verdict: Verdict) -> None:
    report = only_report(network_cases(TRAINED, diopiMul=verdict))
    assert not report.trains
    assert report.failures == {"diopiMul": verdict}
    assert f"  ncf: diopiMul {verdict.replace('_', ' ')}\nmodels: 0 of 1 can be trained" in shown_text(report)


def test_failures_that_do_not_count_do_not_prevent_training() -> None:
    (report,) = model_reports(LEVEL, network_cases(TRAINED, diopiMul=Verdict.failed), lambda case: False)
    assert report.trains


def test_a_call_that_was_not_run_leaves_the_network_undecided() -> None:
    report = only_report(network_cases(TRAINED, diopiMul=Verdict.not_run))
    assert (report.trains, report.not_run, report.failures) == (False, 1, {})
    assert f"  ncf: 1 of {report.calls} calls not run\n" in shown_text(report)


def test_an_operator_that_no_function_serves_is_named() -> None:
    report = only_report(network_cases(UNSERVED), f"models-{UNSERVED}")
    assert (report.passed, report.trains) == (report.calls, False)
    assert "mixtral: _grouped_mm not mapped, histc not mapped\n" in shown_text(report)


def test_only_networks_with_a_call_in_the_run_are_shown() -> None:
    reports = {report.name: report for report in model_reports("models", network_cases(TRAINED))}
    assert reports[TRAINED].trains
    assert all(report.not_run < report.calls for report in reports.values())
    assert [report.trains for name, report in reports.items() if name != TRAINED].count(True) == 0


def test_reports_of_other_levels_list_no_networks() -> None:
    assert model_reports("smoke", network_cases(TRAINED)) == ()
    assert shown_text() == ""


def test_a_report_survives_a_round_trip() -> None:
    report = only_report(network_cases(TRAINED, diopiMul=Verdict.failed))
    assert from_json(ModelReport, to_json(report)) == report


@pytest.mark.parametrize("name", ["jax_cpu", "torch_cpu"])
def test_calls_of_a_network_pass(name: str) -> None:
    if name == "torch_cpu":
        pytest.importorskip("torch")
    vendor = find_vendor(name)
    with vendor.open_device() as device:
        for function in ("diopiEmbedding", "diopiSum", "diopiThresholdBackward"):
            case = model_cases(lookup(function), [TRAINED])[0]
            outcome = run_case(vendor, device, compute_baseline_case(lookup(function), case))
            assert outcome.verdict is Verdict.passed, (function, case.label, outcome.message)
