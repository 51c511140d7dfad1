"""Configuration files translated, and written as a folder: cases for `--data`, waivers, and what is lacking."""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import final

from diopi_test.baseline.manifest_writer import ManifestWriter
from diopi_test.baseline.records import BaselineCase
from diopi_test.baseline.store import file_of
from diopi_test.fuzz.findings import stored_alone
from diopi_test.fuzz.trial import LEVEL, write_calls
from diopi_test.original.entries import Entry, EntryError, read_entry
from diopi_test.original.skips import ImportedWaiver, waivers
from diopi_test.original.source import Skipped, Source, printable, read_source
from diopi_test.original.translate import NotTranslated, Translated, translate

WAIVERS = "waivers.toml"
LACKING = "not_translated.txt"

TOLERANCES = "atol and rtol are not taken over: how far a result may be off is derived here, see docs/budgets.md"


@final
@dataclass
class Imported:
    """What became of configuration files.

    Attributes:
        cases: those that were translated, with distinct labels, by function.
        waivers: those made of skips.
        lacking: a line for each thing that could not be translated: file, line, what, why.
    """

    cases: dict[str, list[BaselineCase]] = field(default_factory=lambda: defaultdict(list))
    waivers: list[ImportedWaiver] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)

    def lacks(self, path: Path, line: int, why: str) -> None:
        """Enter what could not be translated."""
        self.lacking.append(printable(f"{path}:{line}: {why}"))


def import_files(paths: Sequence[Path], progress: Callable[[str], None]) -> Imported:
    """What is in configuration files, case configurations before those of vendors; SourceError if one is no source.

    `progress` is told the name of each entry.
    """
    imported = Imported()
    sources = [(path, read_source(path)) for path in paths]
    translated: list[Translated] = []
    for path, source in sources:
        for one in source.not_read:
            imported.lacks(path, one.line, one.why)
    for path, source in sorted(sources, key=lambda one: is_of_vendor(one[1])):
        for entry in _entries(path, source, imported):
            progress(entry.name)
            found = waivers(path.name, entry, translated) if is_of_vendor(source) else translate(entry)
            for made in found:
                if isinstance(made, NotTranslated):
                    imported.lacks(path, made.line, f"{made.what}: {made.why}")
                elif isinstance(made, ImportedWaiver):
                    imported.waivers.append(made)
                else:
                    translated.append(_entered(imported, made))
    return imported


def is_of_vendor(source: Source) -> bool:
    """Whether a file is a vendor's `device_configs.py`, which skips cases, and not a case configuration."""
    return any(_skips(entry.content) for entry in source.entries)


def _skips(value: object) -> bool:
    if isinstance(value, dict):
        return any(_skips(one) for one in value.values())
    return isinstance(value, Skipped) or (isinstance(value, list | tuple) and any(_skips(one) for one in value))


def _entries(path: Path, source: Source, imported: Imported) -> list[Entry]:
    entries = []
    for raw in source.entries:
        try:
            entries.append(read_entry(raw))
        except EntryError as error:
            imported.lacks(path, raw.line, f"{raw.name}: {error}")
    return entries


def _entered(imported: Imported, one: Translated) -> Translated:
    """A translated case with a label that no other case of its function has, entered."""
    cases = imported.cases[one.case.function]
    known, label, number = {case.label for case in cases}, one.case.label, 2
    while label in known:
        label, number = f"{one.case.label}-{number}", number + 1
    cases.append(case := replace(one.case, label=label))
    return replace(one, case=case)


def check_folder(folder: Path) -> None:
    """FileExistsError if there is something in the folder that would be mixed with what is imported."""
    if folder.is_dir() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty; name another folder with --output")


def write(folder: Path, imported: Imported) -> None:
    """Write what was imported into a new folder, all of it or nothing; OSError or BaselineError if that fails."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-", ignore_cleanup_errors=True) as name:
        made = Path(name) / "made"
        (made / LEVEL).mkdir(parents=True)
        manifest = ManifestWriter(made / LEVEL, LEVEL, stored_alone)
        for function, cases in sorted(imported.cases.items()):
            write_calls(file_of(made / LEVEL, function), cases)
            manifest.enter(function)
        manifest.save()
        if imported.waivers:
            made.joinpath(WAIVERS).write_text("\n".join(one.toml for one in imported.waivers), "utf-8")
        lines = [*imported.lacking, TOLERANCES]
        made.joinpath(LACKING).write_text("".join(f"{line}\n" for line in lines), "utf-8")
        os.replace(made, folder)
