"""The recorder writes the log of a run; `LogContent` reads it and derives the report."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import final

from diopi_impl import VendorError
from diopi_proto.types import VERSION
from diopi_test.baseline.codec import RecordError, from_json, read_value, to_json
from diopi_test.cases.case import CaseClass
from diopi_test.execution.verdict import OPTIONAL, UNSUCCESSFUL, Verdict
from diopi_test.results.causes.report import assign_causes, list_causes
from diopi_test.results.causes.severity import Severity
from diopi_test.results.conformance import families_of
from diopi_test.results.declaration_check import DeclarationCheck
from diopi_test.results.former_versions import upgrade_case
from diopi_test.results.log import LogError, LogRecord, LogWriter, checked_lines, damaged_lines, intact_records
from diopi_test.results.numerics import IEEE_INFO, NumericsInfo
from diopi_test.results.pooling import find_pooled_failures
from diopi_test.results.records import (
    SCHEMA_VERSION,
    BaselineInfo,
    CaseRecord,
    ClaimsReport,
    Counts,
    Draw,
    Environment,
    Report,
    RunOrigin,
    Summary,
    VendorInfo,
    affects_status,
    count,
)
from diopi_test.results.trainability import model_reports
from diopi_test.run.isolation.description import Description
from diopi_test.run.vendor_sources import VendorSources
from diopi_test.waivers.rules import Waivers

PACKAGES = ("diopi", "numpy", "scipy", "jax", "h5py", "ml_dtypes", "pytest")
"""The packages whose versions a log contains."""

MAX_NAMED_CASES = 5
"""The maximum number of cases that the summary lists as not run."""


@final
@dataclass(frozen=True, kw_only=True)
class Header:
    """The first record of a log: the command, the vendor, the baseline and the environment of the run.

    Attributes:
        command: a command line that repeats the run in one process.
        folder: the working directory; relative paths in the command refer to it.
        vendor: the vendor as the user named it.
        seed, sample: the seed and size of the random sample, as in `Draw`; None if all cases run in order.
        strict, fail_on: which failures affect the exit status, as in `RunOptions`.
        origin: when and where the run began; None in logs of older versions.
    """

    schema_version: int
    command: str
    folder: str
    vendor: str
    proto_version: str
    baseline: BaselineInfo
    environment: Environment
    seed: int | None
    sample: int | None
    strict: bool
    origin: RunOrigin | None = field(default=None, metadata=OPTIONAL)
    fail_on: Severity = field(default=Severity.major, metadata=OPTIONAL)

    @classmethod
    def create(
        cls,
        *,
        command: str,
        vendor: str,
        baseline: BaselineInfo,
        seed: int | None,
        sample: int | None,
        strict: bool,
        fail_on: Severity,
        origin: RunOrigin,
    ) -> Header:
        """Return the header of a run that begins now in the current folder; `Header` describes the arguments."""
        return cls(
            schema_version=SCHEMA_VERSION,
            command=command,
            folder=os.getcwd(),
            vendor=vendor,
            proto_version=".".join(map(str, VERSION)),
            baseline=baseline,
            environment=environment(),
            seed=seed,
            sample=sample,
            strict=strict,
            origin=origin,
            fail_on=fail_on,
        )


@final
class Recorder:
    """A writer of the events of a run to its log.

    Args:
        log: The log.
        header: The header of the log; `begin` adds the digest of the baseline.
        command_of: Returns a command line that repeats the case with this ID.
    """

    def __init__(self, log: LogWriter, header: Header, command_of: Callable[[str], str]) -> None:
        self._log = log
        self._header = header
        self._command_of = command_of

    def begin(self, digest: str) -> None:
        """Record the beginning of a run on the baseline with this digest."""
        baseline = replace(self._header.baseline, digest=digest)
        self._log.write("run", to_json(replace(self._header, baseline=baseline)))

    @property
    def has_begun(self) -> bool:
        """Whether the beginning of the run is recorded."""
        return any(entry.kind == "run" for entry in self._log.entries())

    def resume(self) -> None:
        """Record that an incomplete run is resumed."""
        self._log.write("resumed", to_json(environment()))

    def schedule(self, ids: Sequence[str]) -> None:
        """Record the IDs of the cases to run."""
        self._log.write("due", list(ids))

    def vendor(self, description: Description) -> None:
        """Record the vendor and its declared arithmetic.

        Args:
            description: The description of the vendor.

        Raises:
            VendorError: The resumed run began with a different vendor, or with a different arithmetic.
        """
        library = Path(self._header.vendor)
        digest = hashlib.sha256(library.read_bytes()).hexdigest() if library.is_file() else ""
        vendor = VendorInfo(
            name=description.name,
            version=description.version,
            digest=digest,
            receives_cases=description.receives_cases,
            overrides=description.overrides,
        )
        content = self.content()
        if content.has_vendor and content.vendor != vendor:
            raise VendorError(
                f"{self._log.path} {_two_vendors(content.vendor, vendor)}; start a new run without --resume"
            )
        numerics = NumericsInfo.from_declaration(description.numerics)
        if content.has_vendor and content.numerics != numerics:
            raise VendorError(
                f"{self._log.path} has results for the numerics {content.numerics.title}, but the numerics of this run "
                f"are {numerics.title}; start a new run without --resume"
            )
        self._log.write("vendor", to_json(vendor))
        self._log.write("numerics", to_json(numerics))
        if description.sources.functions and not content.sources.functions:
            self._log.write("sources", to_json(VendorSources.read(description.sources)))

    def case(self, record: CaseRecord) -> None:
        """Record the outcome of a case."""
        self._log.write("case", to_json(replace(record, command=self._command_of(record.id))))

    def error(self, text: str) -> None:
        """Record an error that is not the verdict of a case."""
        self._log.write("error", text)

    def stopped(self, reason: str) -> None:
        """Record why the run ends early."""
        self._log.write("stopped", reason)

    def waivers(self, waivers: Waivers) -> None:
        """Record the waivers. The records of cases keep the verdicts without waivers."""
        self._log.write("waivers", to_json(waivers))

    def claims(self, claims: ClaimsReport) -> None:
        """Record the comparison of claims and results."""
        self._log.write("claims", to_json(claims))

    def declaration_check(self, check: DeclarationCheck) -> None:
        """Record the comparison of the declared arithmetic with measurements."""
        self._log.write("declaration", to_json(check))

    def end(self, seconds: float) -> None:
        """Record the duration of the run in seconds; of a resumed run, only of the part since it was resumed."""
        self._log.write("end", round(seconds, 3))

    def discard(self) -> None:
        """Delete the log if no case has ended."""
        if not any(entry.kind == "case" for entry in self._log.entries()):
            self._log.discard()

    def content(self) -> LogContent:
        """Return the content of the log so far."""
        lines = self._log.lines()
        if not self._log.failure:
            return LogContent.from_lines(lines, self._log.path)
        content = LogContent.from_records(intact_records(lines), self._log.path)
        content.errors.append(f"the log is incomplete: {self._log.failure}")
        return content


@final
@dataclass(kw_only=True)
class LogContent:
    """The content of a log.

    Attributes:
        path: the path of the log.
        header: the first record.
        vendor: the vendor under test.
        schedule: the IDs of the cases to run; None if the run ended before they were collected.
        cases: the records of cases by ID. If a case has several records, a failure takes precedence.
        stopped: why the run ended early; empty if it did not.
        errors: errors of the baseline or of the run, which are not verdicts of cases.
        claims: the comparison of the vendor's claims with the results; None if the vendor claims nothing.
        waivers: the waivers of the run.
        numerics: the declared arithmetic; IEEE 754 in logs of older versions.
        declaration_check: the comparison of the declared arithmetic with measurements; None if it was not made.
        seconds: the duration of the run in seconds, the sum over all parts if it was resumed.
        sources: the source files of a vendor in Python.
        has_vendor: whether the vendor has started. Before that, `vendor` has only the name from the command.
        has_ended: whether the run, or its latest part, has ended.
    """

    path: Path
    header: Header
    vendor: VendorInfo
    schedule: Sequence[str] | None = None
    cases: dict[str, CaseRecord] = field(default_factory=dict)
    stopped: str = ""
    errors: list[str] = field(default_factory=list)
    claims: ClaimsReport | None = None
    waivers: Waivers = field(default_factory=Waivers)
    numerics: NumericsInfo = IEEE_INFO
    declaration_check: DeclarationCheck | None = None
    sources: VendorSources = field(default_factory=VendorSources)
    seconds: float = 0.0
    has_vendor: bool = False
    has_ended: bool = True

    @classmethod
    def read(cls, path: Path) -> LogContent:
        """Return the content of the log at `path`; raise LogError if the file is not a log.

        The run may still be in progress. An incomplete last line, which is being written, is ignored.
        """
        lines = checked_lines(path)
        goes_on = not lines[-1].endswith(b"\n")  # the last line is being written
        return cls.from_lines(lines[:-1] if goes_on else lines, path)

    @classmethod
    def from_lines(cls, lines: Sequence[bytes], path: Path) -> LogContent:
        """Return the content of these lines of a log; damaged lines are an error of the run."""
        content = cls.from_records(intact_records(lines), path)
        if damaged := damaged_lines(lines):
            number = "1 line" if len(damaged) == 1 else f"{len(damaged)} lines"
            content.errors.append(f"the log is damaged: {number} can't be read, the first is line {damaged[0]}")
        return content

    @classmethod
    def from_failure(cls, header: Header, reason: str) -> LogContent:
        """Return the log content of a run that could not start, with the reason as its error."""
        return cls(path=Path(), header=header, vendor=VendorInfo(name=header.vendor, version=""), errors=[reason])

    @classmethod
    def from_records(cls, entries: Iterable[LogRecord], path: Path) -> LogContent:
        """Return the content of these records; raise LogError if they do not begin with a header."""
        entries = iter(entries)
        first = next(entries, None)
        if first is None or first.kind != "run":
            description = f"a record of kind {first.kind!r}" if first else "nothing"
            raise LogError(
                f"{path} is not a log of a run: it begins with {description}, expected a record of kind 'run'"
            )
        try:
            header = from_json(Header, first.content)
        except RecordError as error:
            raise LogError(f"the first line of {path} is malformed: {error}") from error
        content = cls(path=path, header=header, vendor=VendorInfo(name=header.vendor, version=""), has_ended=False)
        for entry in entries:
            content._take(entry)
        return content

    def _take(self, entry: LogRecord) -> None:
        """Add a line of the log; raise `LogError` if it is malformed."""
        try:
            self._take_content(entry)
        except RecordError as error:
            raise LogError(f"a line of kind {entry.kind} in {self.path} is malformed: {error}") from error

    def _take_content(self, entry: LogRecord) -> None:
        """Add a line of the log according to its kind; raise LogError if the line begins a second run."""
        match entry.kind:
            case "case":
                self._take_case(from_json(CaseRecord, upgrade_case(entry.content)))
            case "due":
                self.schedule = read_value(tuple[str, ...], entry.content, "due")
            case "vendor":
                self._take_vendor(from_json(VendorInfo, entry.content))
            case "run":
                raise LogError(f"{self.path} contains more than one run: write each run to a separate log")
            case "error":
                self.errors.append(read_value(str, entry.content, "error"))
            case "stopped":
                self.stopped = read_value(str, entry.content, "stopped")
            case "resumed":
                self.stopped, self.has_ended = "", False
            case "claims":
                self.claims = from_json(ClaimsReport, entry.content)
            case "waivers":
                self.waivers = from_json(Waivers, entry.content)
            case "numerics":
                self.numerics = from_json(NumericsInfo, entry.content)
            case "declaration":
                self.declaration_check = from_json(DeclarationCheck, entry.content)
            case "sources":
                self.sources = from_json(VendorSources, entry.content)
            case "end":
                self.seconds += read_value(float, entry.content, "end")
                self.has_ended = True

    def _take_case(self, record: CaseRecord) -> None:
        """Store the record of a case. A failure replaces another verdict, and any verdict replaces `not_run`."""
        earlier = self.cases.get(record.id)
        if earlier is None or earlier.verdict is Verdict.not_run or record.verdict in UNSUCCESSFUL:
            self.cases[record.id] = record

    def _take_vendor(self, vendor: VendorInfo) -> None:
        """Store the vendor; raise `LogError` if the log already names another vendor."""
        if self.has_vendor and vendor != self.vendor:
            raise LogError(f"{self.path} {_two_vendors(self.vendor, vendor)}")
        self.vendor, self.has_vendor = vendor, True

    def report(self) -> Report:
        """Return the report of the run."""
        header = self.header
        recorded = self.cases.values()
        ended, groups = assign_causes(sorted([*recorded, *find_pooled_failures(recorded)], key=lambda case: case.id))
        cases = tuple(self.waivers.apply(case) for case in ended)
        counts = partial(affects_status, fail_on=header.fail_on, strict=header.strict)
        draw = None if header.seed is None else Draw(header.seed, header.sample, header.command)
        return Report(
            schema_version=SCHEMA_VERSION,
            vendor=self.vendor,
            proto_version=header.proto_version,
            baseline=header.baseline,
            numerics=self.numerics,
            declaration_check=self.declaration_check,
            environment=header.environment,
            shuffle=draw,
            summary=self._summary(cases),
            errors=tuple(self.errors),
            claims=self.claims,
            cases=cases,
            waivers=self.waivers.report(ended),
            strict=header.strict,
            models=model_reports(header.baseline.level, cases, counts),
            command=header.command,
            origin=header.origin,
            families=tuple(families_of(cases, lambda class_: header.strict or class_.is_demanded, counts)),
            fail_on=header.fail_on,
            causes=list_causes(cases, groups, counts),
        )

    def _summary(self, all_cases: Sequence[CaseRecord]) -> Summary:
        """Return the counts of verdicts in total and per class, and the reason if the run is incomplete."""
        cases = [case for case in all_cases if case.verdict is not Verdict.not_run]
        has_verdict = {case.id for case in cases}
        not_run = [name for name in self.schedule or () if name not in has_verdict]
        reason = self.stopped or ("" if self.schedule else "no case was collected")
        if not reason and (missed := [name for name in not_run if not self._is_excused(name)]):
            given_up = next((self.cases[name].message for name in missed if name in self.cases), "")
            reason = given_up or "some cases have no verdict although the run has ended"
        if not reason and not self.has_ended:
            reason = "the run has not ended: it is still in progress, or was killed"
        return Summary(
            **count(cases),
            collected=None if self.schedule is None else len(self.schedule),
            not_run=len(not_run),
            first_not_run=tuple(not_run[:MAX_NAMED_CASES]),
            incomplete=bool(reason),
            reason=reason,
            classes={
                case_class.name: Counts(**count(case for case in cases if case.class_ is case_class))
                for case_class in CaseClass
            },
            seconds=round(self.seconds, 3),
        )

    def _is_excused(self, name: str) -> bool:
        """Return whether a case that was recorded as not run does not decide whether the vendor conforms."""
        record = self.cases.get(name)
        return record is not None and not self.header.strict and not record.class_.is_demanded


def _two_vendors(first: VendorInfo, second: VendorInfo) -> str:
    """Return the description of a log with two vendors, with digests if the vendors differ only in these."""
    texts = [vendor.title for vendor in (first, second)]
    if texts[0] == texts[1]:
        texts = [f"{vendor.title} (SHA-256 {vendor.digest})" for vendor in (first, second)]
    return f"has results of the vendor {texts[0]}, but the vendor of this run is {texts[1]}"


def environment() -> Environment:
    """Return the environment of this run."""
    return Environment(
        python=platform.python_version(),
        platform=platform.platform(),
        machine=platform.machine(),
        cpus=os.cpu_count(),
        packages=dict(_installed_versions()),
    )


def _installed_versions() -> Iterator[tuple[str, str]]:
    """Yield the names and versions of the packages that are installed; vendors other than `jax_cpu` need no JAX."""
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            yield name, version(name)
