"""The page is one file with texts in both languages, in which no data is interpreted as markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from shown_reports import HOSTILE, shown_report

from diopi_test.cases.case import CaseClass
from diopi_test.execution.verdict import Verdict
from diopi_test.reporting import html
from diopi_test.reporting.comparison import OutcomeChange, compare
from diopi_test.reporting.html.markup import BREAKS, breakable
from diopi_test.reporting.html.page import asset
from diopi_test.results.causes.severity import Severity
from diopi_test.results.declaration_check import FINDING_TEXTS
from diopi_test.results.overview import describe_run
from diopi_test.results.records import VendorInfo, WaiverState

SOURCES = {name: files(html).joinpath(name).read_text("utf-8") for name in {*html.OF_REPORT, *html.OF_COMPARISON}}
TEXTS: dict[str, list[str]] = json.loads(files(html).joinpath("texts.json").read_text("utf-8"))


class Elements(HTMLParser):
    """The elements of a page, and the content of scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.scripts: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "script" and data.strip():
            self.scripts.append(data)


@pytest.mark.parametrize(
    "page", [html.render_report(shown_report()), html.render_comparison(compare(*[shown_report()] * 2))]
)
def test_a_page_is_one_file(page: str) -> None:
    elements = Elements(page)
    assert {"link", "img", "iframe"} & set(elements.tags) == set()
    assert {name for name, _ in elements.attributes} & {"src", "onclick", "onload", "style"} == set()
    assert "http://www.w3.org/" in page  # the names of namespaces, which nobody loads
    assert set(re.findall(r"https?://[^/\"']+", page)) == {"http://www.w3.org"}
    policy = dict(elements.attributes)["content"]
    assert policy is not None and "default-src 'none'" in policy and "unsafe" not in policy


def test_data_is_escaped() -> None:
    elements = Elements(html.render_report(shown_report()))
    assert elements.tags.count("script") == 4
    data = json.loads(elements.scripts[2])
    assert HOSTILE in data["messages"].values()
    assert "innerHTML" not in "".join(SOURCES.values())


def test_the_title_is_escaped() -> None:
    page = html.render_report(replace(shown_report(), vendor=VendorInfo(name="<b>", version="1")))
    assert "<title>&lt;b&gt; 1</title>" in page


def test_every_text_is_in_both_languages_with_the_same_values() -> None:
    for key, (english, chinese) in TEXTS.items():
        assert english and chinese, key
        assert sorted(re.findall(r"\{\w+\}", english)) == sorted(re.findall(r"\{\w+\}", chinese)), key


def test_every_text_exists_and_is_used() -> None:
    source = "".join(SOURCES.values())
    used_keys = set(re.findall(r"\bt\(\s*\"([^\"]+)\"", source))
    keys = {
        *(f"verdict-{item}" for item in Verdict),
        *(f"class-{item}" for item in CaseClass),
        *(f"waiver-{item.name}" for item in WaiverState),
        *(f"change-{item}" for item in (*OutcomeChange, "less accurate", "slower", "alike")),
        *(f"theme-{item}" for item in ("auto", "light", "dark")),
        *(f"order-{item}" for item in ("id", "ratio", "seconds")),
        *(f"headline-{item}" for item in ("right", "wrong", "none")),
        *("yes", "no", "calls-alone", "whole-cases"),
        *(f"fact-{name}" for name, _ in describe_run(shown_report())),
        *("element-types", "guarantee", "forms", "gradient", "no-script"),
        *(f"severity-{item}" for item in Severity),
        *(f"declaration-{key}" for key in FINDING_TEXTS),
        *("causes-left-out", "cases-left-out"),
    }
    assert used_keys | keys == set(TEXTS)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("expected 0.5 ± 9.1e-07, -1", "expected 0.5 ± 9.1e-07,| -1"),
        ("--stop-after-identical 2.13.0", "--stop-|after-|identical 2.13.0"),
        ("diopiSoftmax[float32-first_of-4]", "diopi|Softmax[|float32-|first_|of-4]"),
        ("out.values,tests/b.py", "out.|values,|tests/|b.|py"),
    ],
)
def test_numbers_and_options_are_not_broken(text: str, parts: str) -> None:
    assert "".join(map(str, breakable(text))).split("<wbr>") == parts.split("|")


def test_scripts_break_names_in_the_same_places() -> None:
    assert f"/{BREAKS.pattern}/" in asset("page.js")
