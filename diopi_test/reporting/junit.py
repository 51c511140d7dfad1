"""JUnit XML for build servers: one test suite per function, one test case per case.

A failed case that counts against the vendor is a failure, or an error if its process died. A case that did not pass and
does not count is skipped, with its verdict as the reason: it is not implemented, waived, of a class that does not
affect conformance, or not severe enough. If the run is incomplete, the reason is an error in a separate suite. A run
with exit status 0 therefore has neither failures nor errors.

Source: the format as documented by the JUnit ant task and read by Jenkins and GitLab.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from diopi_test.execution.verdict import EXECUTED, PROCESS_LOST, UNSUCCESSFUL, Verdict
from diopi_test.results.details import details
from diopi_test.results.overview import describe_run
from diopi_test.results.records import CaseRecord, Report

RUN = "run"
"""The name of the test suite that contains problems of the run: why it is incomplete, and errors without a case."""

ELEMENTS_BY_COUNT = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
"""The attributes of a test suite that contain a count, and for each of them the name of the counted elements."""

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Matches a character that XML 1.0 forbids."""


def junit(report: Report) -> str:
    """Return the JUnit XML document of a report, including the XML declaration."""
    root = Element("testsuites", name=_text(report.title), time=f"{report.summary.seconds:.3f}")
    if problems := list(_problems(report)):
        suite = SubElement(root, "testsuite", name=RUN, time="0.000")
        for problem in problems:
            case = SubElement(suite, "testcase", classname=RUN, name=RUN)
            SubElement(case, "error", message=_text(problem), type="incomplete")
    by_function = sorted(report.cases, key=lambda case: case.function)
    for function, cases in groupby(by_function, key=lambda case: case.function):
        _add_function(root, function, list(cases), report)
    for element in (root, *root):
        _count(element)
    _add_origin(root, report)
    indent(root, " ")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(root, "unicode")}\n'


def _add_origin(root: Element, report: Report) -> None:
    """Add the time and the host to every suite, and all other facts about the run as properties of the first suite."""
    if report.origin is not None:
        for suite in root:
            suite.set("timestamp", report.origin.started[:19])
            suite.set("hostname", _text(report.origin.host))
    first = next(iter(root), None)
    if first is not None:
        properties = Element("properties")
        for name, value in describe_run(report):
            if value:
                SubElement(properties, "property", name=name, value=_text(value))
        first.insert(0, properties)


def _problems(report: Report) -> Iterator[str]:
    """Yield a sentence per problem that makes the result unreliable: errors, missing verdicts, no executed case."""
    yield from report.errors
    summary = report.summary
    if summary.incomplete:
        yield f"incomplete: {summary.not_run} cases have no verdict, {summary.reason}"
    elif not summary.number(EXECUTED):
        yield "no case was executed"


def _add_function(root: Element, function: str, cases: Sequence[CaseRecord], report: Report) -> None:
    """Add the test suite of a function to `root`, with one test case per case of the function."""
    seconds = sum(case.seconds for case in cases)
    suite = SubElement(root, "testsuite", name=function, time=f"{seconds:.3f}")
    for case in cases:
        name, time = _text(case.label), f"{case.seconds:.3f}"
        element = SubElement(suite, "testcase", classname=function, name=name, time=time)
        _add_outcome(element, case, counts=report.counts(case))


def _count(element: Element) -> None:
    """Set the attributes `ELEMENTS_BY_COUNT` of a suite, or of the root element, to the numbers of its elements."""
    for name, path in ELEMENTS_BY_COUNT.items():
        element.set(name, str(len(element.findall(f".//{path}"))))


def _add_outcome(element: Element, case: CaseRecord, *, counts: bool) -> None:
    """Add the outcome of a case to its test case; a passed case gets none.

    Args:
        element: The test case, to which elements are added.
        case: The record of the case.
        counts: Whether the case affects the exit status. If it does not, a failure is reported as skipped.
    """
    if case.verdict is Verdict.passed:
        return
    if case.cause:
        properties = SubElement(element, "properties")
        SubElement(properties, "property", name="cause", value=case.cause)
        SubElement(properties, "property", name="severity", value=str(case.severity))
    if case.verdict not in UNSUCCESSFUL:
        SubElement(element, "skipped", message=_text(f"{case.verdict}: {case.message}"))
    elif not counts:
        reason = f"does not count: {case.severity}: {case.verdict}: {case.message}"
        SubElement(element, "skipped", message=_text(reason))
    else:
        kind = "error" if case.verdict in PROCESS_LOST else "failure"
        child = SubElement(element, kind, message=_text(case.message), type=case.verdict)
        child.text = _text("\n".join(_body(case)))


def _body(case: CaseRecord) -> Iterable[str]:
    """Yield the lines of a failure: messages, details and the command that repeats the case."""
    yield from (check.message for check in case.checks if not check.passed)
    yield from details(case.checks)
    yield case.command


def _text(text: str) -> str:
    r"""Return a text in which each character that XML 1.0 forbids is replaced by its code, such as `\x1b`."""
    return _NOT_XML.sub(lambda match: f"\\x{ord(match.group()):02x}", text)
