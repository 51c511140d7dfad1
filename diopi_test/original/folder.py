"""A folder of translated entries: each is written when it is translated, so that an import can go on where it ended.

`entries/` has a file for each entry. When all entries are there, the cases are described by function for
`diopi_test.baseline.descriptions`, beside the waivers and the list of what could not be translated.
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
from diopi_test.original.source import RawEntry, Source, printable, read_source
from diopi_test.original.translate import NotTranslated, Translated, label_of, translate

WAIVERS = "waivers.toml"
LACKING = "not_translated.txt"
ENTRIES = "entries"

LIMIT = 256 * 2**20
"""Bytes of the file of an entry at most."""

TOLERANCES = "atol and rtol are not taken over: how far a result may be off is derived here, see docs/budgets.md"


@final
@dataclass(frozen=True)
class EntryFile:
    """An entry of a configuration file, and the file of the folder that holds its translation.

    Attributes:
        source: The configuration file.
        raw: The entry.
        label: What the labels of its cases have.
        path: The file of its translation.
        key: A digest of everything the translation depends on.
    """

    source: Path
    raw: RawEntry
    label: str
    path: Path
    key: str

    def translated(self) -> Iterator[Translated | NotTranslated]:
        """Translate the entry."""
        try:
            entry = read_entry(self.raw)
        except EntryError as error:
            yield NotTranslated(self.raw.line, self.raw.name, str(error))
            return
        except Exception as error:  # costs this entry, and is reported as what it is
            why = f"internal error: {type(error).__name__}: {error}"
            yield NotTranslated(self.raw.line, self.raw.name, why, is_internal=True)
            return
        yield from translate(replace(entry, label=self.label))

    def is_done(self) -> bool:
        """Return whether the folder has the translation."""
        try:
            return self.path.is_file() and self.read()["key"] == self.key
        except (BaselineError, ValueError, KeyError, TypeError):
            return False

    def read(self) -> Any:
        """Return the record of the translation."""
        return json.loads(read_regular_file(self.path, LIMIT))

    def write(self) -> None:
        """Translate the entry and write the translation; BaselineError if it cannot be written."""
        cases: dict[str, list[str]] = defaultdict(list)
        lacking, internal = [], 0
        for one in self.translated():
            if isinstance(one, NotTranslated):
                lacking.append(_line(self.source, one))
                internal += one.is_internal
            else:
                cases[one.case.function].append(case_line(one.case.case))
        record = {"key": self.key, "lacking": lacking, "internal": internal, "cases": cases}
        write_atomically(self.path, json.dumps(record, separators=(",", ":")).encode())


@final
@dataclass
class Imported:
    """What became of configuration files.

    Attributes:
        cases: The number of translated cases by function.
        waivers: Those made of skips.
        lacking: A line for each thing that could not be translated: file, line, what, why.
        notes: A line for each thing that is replaced by something else here, which it names.
        internal: How many of what is lacking are errors of the project's.
        kept: How many entries had been translated before.
    """

    cases: Counter[str] = field(default_factory=Counter)
    waivers: list[ImportedWaiver] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    internal: int = 0
    kept: int = 0


Progress = Callable[[int, int, str], None]
"""Is told how many entries are done, of how many, and the name of the one that follows."""


def import_files(paths: Sequence[Path], folder: Path, progress: Progress, pattern: str = "*") -> Imported:
    """Translate the entries of configuration files into a folder, and go on where an earlier import ended.

    Args:
        paths: Case configurations, and those of vendors.
        folder: The folder to write; it is new, or from an import of the same files.
        progress: Is called before each entry.
        pattern: Only entries whose names match are translated; those translated before stay.

    Returns:
        What the folder has then.

    Raises:
        SourceError: A file is not Python source.
        FileExistsError: The folder has something else.
        BaselineError: The folder cannot be written.
    """
    sources = [(path, read_source(path)) for path in paths]
    files = entry_files(sources, folder)
    check_folder(folder, files)
    (folder / ENTRIES).mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder / ENTRIES)
    imported, done = Imported(), {file.path for file in files if file.is_done()}
    chosen = [file for file in files if file.path in done or fnmatchcase(file.raw.name, pattern)]
    for number, file in enumerate(chosen):
        progress(number, len(chosen), file.raw.name)
        if file.path in done:
            imported.kept += 1
        else:
            file.write()
    for stale in {path for path in (folder / ENTRIES).iterdir()} - {file.path for file in chosen}:
        stale.unlink()
    for path, source in sources:
        imported.lacking += [_line(path, NotTranslated(one.line, one.why, "")) for one in source.not_read]
        if network := network_name(source):
            imported.notes.append(printable(f"{path}: {advice(network, source.entries)}"))
    _describe(folder, chosen, imported)
    left_out = {file.raw.name for file in files} - {file.raw.name for file in chosen}
    _waive(sources, chosen, left_out, imported)
    _write_lists(folder, imported)
    return imported


def _line(path: Path, one: NotTranslated) -> str:
    return printable(f"{path}:{one.line}: {one.what}" + (f": {one.why}" if one.why else ""))


def entry_files(sources: Sequence[tuple[Path, Source]], folder: Path) -> list[EntryFile]:
    """The entries of the case configurations, in order, with labels that no two of them share."""
    digest = source_digest(("diopi_test.original.folder", *(f"diopi_proto.functions.{name}" for name in families())))
    files: list[EntryFile] = []
    labels: set[str] = set()
    for path, source in sources:
        for raw in () if is_device_configuration(source) or network_name(source) else source.entries:
            label, number = label_of(raw.name), 2
            while label in labels:
                label, number = f"{label_of(raw.name)}.{number}", number + 1
            labels.add(label)
            key = hashlib.sha256(
                "\0".join((digest, str(path), label, repr(raw))).encode("utf-8", "replace")
            ).hexdigest()
            name = f"{label[:80]}-{_digest(label)[:8]}.json"
            files.append(EntryFile(path, raw, label, folder / ENTRIES / name, key))
    return files


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def check_folder(folder: Path, files: Sequence[EntryFile]) -> None:
    """FileExistsError if there is something in the folder that is not from an import of entries such as these."""
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    there = {path.name for path in (folder / ENTRIES).glob("*.json")}
    if not (folder / ENTRIES).is_dir() or (there and not there & {file.path.name for file in files}):
        raise FileExistsError(f"{folder} has something else than an import of these files; name another with --output")


def _describe(folder: Path, files: Sequence[EntryFile], imported: Imported) -> None:
    """Write the cases of all entries by function, in the place of those of an earlier import."""
    lines: dict[str, list[str]] = defaultdict(list)
    for file in files:
        record = file.read()
        imported.lacking += record["lacking"]
        imported.internal += record["internal"]
        for function, cases in record["cases"].items():
            lines[function] += cases
            imported.cases[function] += len(cases)
    part = folder / f".{DESCRIBED}-{os.getpid()}.part"
    part.mkdir(parents=True)
    try:
        for function, cases in lines.items():
            write_atomically(part / f"{function}.json", render_descriptions(function, cases))
        shutil.rmtree(folder / DESCRIBED, ignore_errors=True)
        os.replace(part, folder / DESCRIBED)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _waive(
    sources: Sequence[tuple[Path, Source]], files: Sequence[EntryFile], left_out: Collection[str], imported: Imported
) -> None:
    """Make the waivers of the vendors' configurations, for entries translated now or before.

    Args:
        sources: All sources.
        files: The entries that are translated.
        left_out: The names of entries that the user did not select; nothing is said about their skips.
        imported: Receives the waivers, and what is not translated.
    """
    of_vendors = [(path, source) for path, source in sources if is_device_configuration(source)]
    entries = [
        (path, read_device_entry(raw))
        for path, source in of_vendors
        if not network_name(source)
        for raw in source.entries
        if raw.name not in left_out
    ]
    named = tuple(label_of(entry.name) for _, entry in entries)
    meant = [file for file in files if file.label.startswith(named)]  # patterns could match no other cases
    cases = ImportedCases((one for file in meant for one in _imported_cases(file)), {file.raw.name for file in files})
    for path, entry in entries:
        for made in waivers(path.name, entry, cases):
            if isinstance(made, NotTranslated):
                imported.lacking.append(_line(path, made))
            else:
                imported.waivers.append(made)
        imported.notes += map(printable, tolerance_notes(str(path), entry, cases))


def _imported_cases(file: EntryFile) -> Iterator[ImportedCase]:
    """What skips need of the cases of an entry."""
    made = [one for one in file.translated() if isinstance(one, Translated)]
    if not made:
        return
    entry = read_entry(file.raw)
    for case, origin in ((one.case, one.origin) for one in made):
        yield ImportedCase(
            id=case.id, entry=entry, function=origin.function, number=origin.number, dtypes=origin.dtypes
        )


def _write_lists(folder: Path, imported: Imported) -> None:
    lines = [*imported.lacking, *imported.notes, TOLERANCES]
    write_atomically(folder / LACKING, "".join(f"{line}\n" for line in lines).encode())
    if imported.waivers:
        write_atomically(folder / WAIVERS, "\n".join(one.toml for one in imported.waivers).encode())
    else:
        (folder / WAIVERS).unlink(missing_ok=True)
