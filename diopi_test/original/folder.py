"""A folder of translated entries. Each entry is written as soon as it is translated, so that an import can be resumed.

`entries/` has a file for each entry. When all entries are there, the cases are described by function for
`diopi_test.baseline.descriptions`, next to the waivers and the list of what could not be translated.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, final

from diopi_proto.families import families
from diopi_test.baseline.dependencies import source_digest
from diopi_test.baseline.descriptions import FOLDER as DESCRIBED
from diopi_test.baseline.descriptions import case_line, render_descriptions
from diopi_test.baseline.errors import BaselineError
from diopi_test.baseline.files import read_regular_file, remove_leftovers, write_atomically
from diopi_test.original.device import is_device_configuration, read_device_entry
from diopi_test.original.entries import EntryError, read_entry
from diopi_test.original.networks import advice, network_name
from diopi_test.original.skips import ImportedCase, ImportedCases, ImportedWaiver, tolerance_notes, waivers
from diopi_test.original.source import RawEntry, Source, escape, read_source
from diopi_test.original.translate import NotTranslated, Translated, escape_label, translate

WAIVERS = "waivers.toml"
"""The file with the waivers that `Skip(…)` is translated to."""

NOT_TRANSLATED = "not_translated.txt"
"""The file with the entries that were not translated, and the reasons."""

ENTRIES = "entries"
"""The folder with a file for each translated entry."""

MAX_BYTES = 256 * 2**20
"""The maximum size in bytes of the file of an entry."""

TOLERANCES = "atol and rtol are not imported: the suite derives error budgets, see docs/budgets.md"
"""The note for entries that set tolerances."""


@final
@dataclass(frozen=True, kw_only=True)
class EntryFile:
    """An entry of a configuration file, and the file of the folder that holds its translation.

    Attributes:
        source: The configuration file.
        raw: The entry as the configuration file has it.
        label: The part of the cases' labels that stands for the entry, which is unique in the folder.
        path: The file of its translation.
        key: A digest of everything the translation depends on: the entry, its file and label, and the suite's code.
    """

    source: Path
    raw: RawEntry
    label: str
    path: Path
    key: str

    def translate(self) -> Iterator[Translated | NotTranslated]:
        """Translate the entry.

        Yields:
            The translated cases, and a record for each part that can't be translated.
        """
        try:
            entry = read_entry(self.raw)
        except EntryError as error:
            yield NotTranslated(line=self.raw.line, subject=self.raw.name, reason=str(error))
            return
        except Exception as error:  # affects only this entry, and is reported as an internal error
            reason = f"internal error: {type(error).__name__}: {error}"
            yield NotTranslated(line=self.raw.line, subject=self.raw.name, reason=reason, is_internal=True)
            return
        yield from translate(replace(entry, label=self.label))

    def is_done(self) -> bool:
        """Return whether the folder has the translation, made of the same entry by the same code."""
        try:
            return self.path.is_file() and self.read()["key"] == self.key
        except (BaselineError, ValueError, KeyError, TypeError):
            return False

    def read(self) -> Any:
        """Return the record of the translation, a dictionary with the keys that `write` stores."""
        return json.loads(read_regular_file(self.path, MAX_BYTES))

    def write(self) -> None:
        """Translate the entry and write the translation; raise BaselineError if it can't be written.

        The record has four keys: `key`; `cases`, the described cases by function; `lacking`, a line for each part that
        was not translated; and `internal`, the number of these lines that report internal errors.
        """
        cases: dict[str, list[str]] = defaultdict(list)
        not_translated, internal = [], 0
        for outcome in self.translate():
            if isinstance(outcome, NotTranslated):
                not_translated.append(_format_problem(self.source, outcome))
                internal += outcome.is_internal
            else:
                cases[outcome.case.function].append(case_line(outcome.case.case))
        record = {"key": self.key, "lacking": not_translated, "internal": internal, "cases": cases}
        write_atomically(self.path, json.dumps(record, separators=(",", ":")).encode())


@final
@dataclass(kw_only=True)
class ImportSummary:
    """The result of an import.

    Attributes:
        cases: The number of translated cases by function.
        waivers: The waivers that were derived from skips.
        not_translated: A line for each part that could not be translated: file, line, subject, reason.
        notes: A line for each part that has a replacement, which the line names.
        internal: The number of entries of `not_translated` that are internal errors.
        already_translated: The number of entries that an earlier import had translated.
    """

    cases: Counter[str] = field(default_factory=Counter)
    waivers: list[ImportedWaiver] = field(default_factory=list)
    not_translated: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    internal: int = 0
    already_translated: int = 0


EntryCallback = Callable[[int, int, str], None]
"""A callback that receives the number of finished entries, of all entries, and the name of the next entry."""


def import_files(paths: Sequence[Path], folder: Path, progress: EntryCallback, pattern: str = "*") -> ImportSummary:
    """Translate the entries of configuration files into a folder, and continue where an earlier import stopped.

    Args:
        paths: Case configurations, and configurations of vendors.
        folder: The folder to write; it is new, or from an import of the same files.
        progress: A callback that is called before each entry.
        pattern: Translate only entries whose names match; earlier translations stay.

    Returns:
        A summary of the contents of the folder.

    Raises:
        SourceError: A file is not Python source.
        FileExistsError: The folder has other contents than an import of these files.
        BaselineError: A file can't be written.
    """
    sources = [(path, read_source(path)) for path in paths]
    files = entry_files(sources, folder)
    check_folder(folder, files)
    (folder / ENTRIES).mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder / ENTRIES)
    summary, completed = ImportSummary(), {file.path for file in files if file.is_done()}
    chosen = [file for file in files if file.path in completed or fnmatchcase(file.raw.name, pattern)]
    for number, file in enumerate(chosen):
        progress(number, len(chosen), file.raw.name)
        if file.path in completed:
            summary.already_translated += 1
        else:
            file.write()
    for stale in {path for path in (folder / ENTRIES).iterdir()} - {file.path for file in chosen}:
        stale.unlink()
    for path, source in sources:
        _summarize_source(path, source, summary)
    _write_described(folder, chosen, summary)
    left_out = {file.raw.name for file in files} - {file.raw.name for file in chosen}
    _add_waivers(sources, chosen, left_out, summary)
    _write_lists(folder, summary)
    return summary


def _summarize_source(path: Path, source: Source, summary: ImportSummary) -> None:
    """Add the unreadable parts of a configuration, and advice about its network, to the summary."""
    summary.not_translated += [
        _format_problem(path, NotTranslated(line=not_read.line, subject=not_read.reason, reason=""))
        for not_read in source.not_read
    ]
    if network := network_name(source):
        summary.notes.append(escape(f"{path}: {advice(network, source.entries)}"))


def _format_problem(path: Path, problem: NotTranslated) -> str:
    """Return a line with the place of a problem in the configuration, its subject and the reason."""
    return escape(f"{path}:{problem.line}: {problem.subject}" + (f": {problem.reason}" if problem.reason else ""))


def entry_files(sources: Sequence[tuple[Path, Source]], folder: Path) -> list[EntryFile]:
    """Return the entries of the case configurations in order, with distinct labels.

    Args:
        sources: The configuration files and their contents.
        folder: The folder of the import.

    Returns:
        The entries with the paths of their translations.
    """
    digest = source_digest(("diopi_test.original.folder", *(f"diopi_proto.functions.{name}" for name in families())))
    files: list[EntryFile] = []
    labels: set[str] = set()
    for path, source in sources:
        for raw in () if is_device_configuration(source) or network_name(source) else source.entries:
            label, number = escape_label(raw.name), 2
            while label in labels:
                label, number = f"{escape_label(raw.name)}.{number}", number + 1
            labels.add(label)
            key = hashlib.sha256(
                "\0".join((digest, str(path), label, repr(raw))).encode("utf-8", "replace")
            ).hexdigest()
            name = f"{label[:80]}-{_digest(label)[:8]}.json"
            files.append(EntryFile(source=path, raw=raw, label=label, path=folder / ENTRIES / name, key=key))
    return files


def _digest(text: str) -> str:
    """Return the SHA-256 of a text as hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def check_folder(folder: Path, files: Sequence[EntryFile]) -> None:
    """Raise FileExistsError if the folder has contents that are not from an import of these entries.

    Args:
        folder: The folder of the import.
        files: The entries to import.

    Raises:
        FileExistsError: The folder has other contents.
    """
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    existing = {path.name for path in (folder / ENTRIES).glob("*.json")}
    if not (folder / ENTRIES).is_dir() or (existing and not existing & {file.path.name for file in files}):
        raise FileExistsError(f"{folder} has other contents than an import of these files; pass another --output")


def _write_described(folder: Path, files: Sequence[EntryFile], summary: ImportSummary) -> None:
    """Write a file for each function with its cases of all entries, and replace those of an earlier import.

    Args:
        folder: The folder of the import.
        files: The translated entries.
        summary: Receives the numbers of cases, and the lines about what was not translated.
    """
    lines: dict[str, list[str]] = defaultdict(list)
    for file in files:
        record = file.read()
        summary.not_translated += record["lacking"]
        summary.internal += record["internal"]
        for function, cases in record["cases"].items():
            lines[function] += cases
            summary.cases[function] += len(cases)
    part = folder / f".{DESCRIBED}-{os.getpid()}.part"
    part.mkdir(parents=True)
    try:
        for function, cases in lines.items():
            write_atomically(part / f"{function}.json", render_descriptions(function, cases))
        shutil.rmtree(folder / DESCRIBED, ignore_errors=True)
        os.replace(part, folder / DESCRIBED)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _add_waivers(
    sources: Sequence[tuple[Path, Source]],
    files: Sequence[EntryFile],
    left_out: Collection[str],
    summary: ImportSummary,
) -> None:
    """Add the waivers of the vendors' configurations to the summary, for entries translated now or earlier.

    Args:
        sources: All sources.
        files: The entries that are translated.
        left_out: The names of entries that the user did not select; their skips are ignored.
        summary: Receives the waivers, and the skips that can't be translated.
    """
    device_sources = [(path, source) for path, source in sources if is_device_configuration(source)]
    entries = [
        (path, read_device_entry(raw))
        for path, source in device_sources
        if not network_name(source)
        for raw in source.entries
        if raw.name not in left_out
    ]
    named = tuple(escape_label(entry.name) for _, entry in entries)
    relevant = [file for file in files if file.label.startswith(named)]  # patterns can match only these cases
    cases = ImportedCases(
        (case for file in relevant for case in _imported_cases(file)), {file.raw.name for file in files}
    )
    for path, entry in entries:
        for outcome in waivers(path.name, entry, cases):
            if isinstance(outcome, NotTranslated):
                summary.not_translated.append(_format_problem(path, outcome))
            else:
                summary.waivers.append(outcome)
        summary.notes += map(escape, tolerance_notes(str(path), entry, cases))


def _imported_cases(file: EntryFile) -> Iterator[ImportedCase]:
    """Yield the cases of an entry with the properties that skips compare."""
    translated = [outcome for outcome in file.translate() if isinstance(outcome, Translated)]
    if not translated:
        return
    entry = read_entry(file.raw)
    for case, origin in ((outcome.case, outcome.origin) for outcome in translated):
        yield ImportedCase(
            id=case.id, entry=entry, function=origin.function, number=origin.number, dtypes=origin.dtypes
        )


def _write_lists(folder: Path, summary: ImportSummary) -> None:
    """Write the list of entries that were not translated, and the waivers if there are any."""
    lines = [*summary.not_translated, *summary.notes, TOLERANCES]
    write_atomically(folder / NOT_TRANSLATED, "".join(f"{line}\n" for line in lines).encode())
    if summary.waivers:
        write_atomically(folder / WAIVERS, "\n".join(waiver.toml for waiver in summary.waivers).encode())
    else:
        (folder / WAIVERS).unlink(missing_ok=True)
