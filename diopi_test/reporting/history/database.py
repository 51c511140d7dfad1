"""`History`: the SQLite database of the history, which several processes may use at the same time."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Self, TypeVar, final

from diopi_test.cases.case import CaseClass
from diopi_test.execution.verdict import Verdict
from diopi_test.reporting.history.entry import (
    CauseEntry,
    FunctionEntry,
    RunEntry,
    cause_functions,
    function_entries,
    run_entry,
)
from diopi_test.reporting.history.tables import APPLICATION_ID, TABLES, VERSION
from diopi_test.results.log import state_folder
from diopi_test.results.records import Report, RunOrigin

E = TypeVar("E", RunEntry, FunctionEntry, CauseEntry)

WAIT = 30.0
"""Seconds for which a command waits for another command that is writing; after that, it raises HistoryError."""


class HistoryError(Exception):
    """A history that can't be used; the message names the file, the reason and a remedy."""


class Addition(StrEnum):
    """The effect of adding a run to the history.

    Attributes:
        added: the run is new in the history.
        replaced: the run replaces an earlier report of the same run, for example after the run was resumed.
        unchanged: the history already contained the run with the same report.
    """

    added = "added"
    replaced = "replaced"
    unchanged = "unchanged"


def default_path() -> Path:
    """Return the path of the history in the user's state folder."""
    return state_folder().with_name("history.sqlite")


@final
class History:
    """A connection to the database of a history. Create it with the context manager `opened`.

    The database numbers the runs. Methods take this number as `run`.

    Args:
        path: The path of the database.
        connection: The connection to the database.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    @contextmanager
    def opened(cls, path: Path, *, create: bool = False) -> Iterator[Self]:
        """Open a history, and close it afterwards.

        Args:
            path: The path of the database.
            create: Whether to create the database if there is none.

        Yields:
            The history.

        Raises:
            HistoryError: The file does not exist, is not a history, or is damaged. Errors of SQLite while the history
                is open are converted to HistoryError as well.
        """
        if create and not path.exists():
            _create(path)
        elif not path.is_file():
            raise HistoryError(f"there is no history at {path}; diopi-test history add creates it")
        try:
            connection = sqlite3.connect(path, timeout=WAIT, isolation_level=None)
            try:
                _check_file(connection, path)
                connection.execute("PRAGMA foreign_keys = ON")
                yield cls(path, connection)
            finally:
                connection.close()
        except sqlite3.OperationalError as error:
            raise HistoryError(f"the history {path} can't be used: {error}") from error
        except sqlite3.DatabaseError as error:
            raise HistoryError(f"{path} is damaged, or no SQLite database: {error}; pass another --db") from error

    def add(self, report: Report, origin: RunOrigin, causes: Sequence[CauseEntry] = ()) -> Addition:
        """Add a run in one transaction. A run that is in the history already is replaced if its report differs.

        Args:
            report: The report of the run.
            origin: When, where and on which device the run took place, as `complete_origin` returns it.
            causes: The causes of its failures, as `cause_entries` returns them.

        Returns:
            What the addition changed.
        """
        entry = run_entry(report, origin)
        with self._transaction():
            rows = self._connection.execute("SELECT run, content FROM runs WHERE identity = ?", [entry.identity])
            if (row := rows.fetchone()) and row[1] == entry.content:
                return Addition.unchanged
            if row:
                self._connection.execute("DELETE FROM runs WHERE run = ?", [row[0]])
            values = {**asdict(entry), "run": row[0] if row else None, "added": _current_time()}
            run = self._insert("runs", [values])
            self._insert("functions", ({"run": run, **asdict(function)} for function in function_entries(report)))
            self._insert("causes", ({"run": run, **asdict(cause)} for cause in causes))
            self._insert_cause_functions(run, report)
            self._insert_cases(run, report)
        return Addition.replaced if row else Addition.added

    def _insert_cause_functions(self, run: int, report: Report) -> None:
        """Insert the functions with failed or waived cases of each cause of a run."""
        rows = (
            {"run": run, "cause": cause, "function": function}
            for cause, functions in cause_functions(report).items()
            for function in sorted(functions)
        )
        self._insert("cause_functions", rows)

    def _insert_cases(self, run: int, report: Report) -> None:
        """Insert the number of cases by class and verdict, the flaky cases and the timed calls of a run."""
        verdicts = (
            {
                "run": run,
                "class": name,
                "verdict": verdict,
                "counts": report.decides(CaseClass[name]),
                "cases": counts.number([verdict]),
            }
            for name, counts in report.summary.classes.items()
            for verdict in Verdict
            if verdict is not Verdict.not_run and counts.number([verdict])
        )
        flaky = ({"run": run, "case_id": case.id} for case in report.cases if case.verdict is Verdict.flaky)
        timings = (
            {"run": run, "case_id": case.id, "function": case.function, "seconds": case.timing.seconds}
            for case in report.cases
            if case.timing is not None
        )
        for table, rows in (("verdicts", verdicts), ("flaky", flaky), ("timings", timings)):
            self._insert(table, rows)

    def runs(self, vendor: str = "", level: str = "") -> Mapping[int, RunEntry]:
        """Return the runs by number, oldest first.

        Args:
            vendor: Only runs of the vendor with this name; empty for all.
            level: Only runs of this level; empty for all.

        Returns:
            The runs.
        """
        condition = "WHERE (?1 = '' OR vendor = ?1) AND (?2 = '' OR level = ?2) ORDER BY started, run"
        return dict(self._read(RunEntry, "runs", condition, vendor, level))

    def functions(self, run: int) -> Mapping[str, FunctionEntry]:
        """Return the functions of a run by name."""
        entries = self._read(FunctionEntry, "functions", "WHERE run = ?1 ORDER BY function", run)
        return {entry.function: entry for _, entry in entries}

    def causes(self, run: int) -> Mapping[str, CauseEntry]:
        """Return the causes of a run by ID, the causes with the most cases first."""
        entries = self._read(CauseEntry, "causes", "WHERE run = ?1 ORDER BY cases DESC, cause", run)
        return {entry.cause: entry for _, entry in entries}

    def cause_functions(self, run: int) -> Mapping[str, frozenset[str]]:
        """Return the functions with failed or waived cases of each cause of a run, by the ID of the cause."""
        functions: dict[str, set[str]] = defaultdict(set)
        query = "SELECT cause, function FROM cause_functions WHERE run = ?"
        for cause, function in self._connection.execute(query, [run]).fetchall():
            functions[cause].add(function)
        return {cause: frozenset(names) for cause, names in functions.items()}

    def verdicts(self, run: int) -> Mapping[Verdict, int]:
        """Return the number of cases of a run by verdict."""
        rows = self._connection.execute(
            "SELECT verdict, sum(cases) FROM verdicts WHERE run = ? GROUP BY verdict", [run]
        ).fetchall()
        counts = dict(rows)
        return {verdict: counts[verdict] for verdict in Verdict if verdict in counts}

    def flaky(self, run: int) -> frozenset[str]:
        """Return the IDs of the flaky cases of a run."""
        return frozenset(row[0] for row in self._connection.execute("SELECT case_id FROM flaky WHERE run = ?", [run]))

    def timings(self, run: int) -> Mapping[str, float]:
        """Return the duration of each timed call of a run in seconds, by the ID of the case."""
        return dict(self._connection.execute("SELECT case_id, seconds FROM timings WHERE run = ?", [run]).fetchall())

    def _read(self, kind: type[E], table: str, condition: str, *values: Any) -> Iterator[tuple[int, E]]:
        """Yield the number of the run and the entry of each row of a table that meets a condition.

        Args:
            kind: The class of the entries, whose fields are columns of the table.
            table: The name of the table.
            condition: The SQL after the name of the table, with parameters such as `?1`; "" for all rows.
            *values: The values of these parameters, in order.
        """
        names = [field.name for field in fields(kind)]
        rows = self._connection.execute(f"SELECT run, {', '.join(names)} FROM {table} {condition}", values)
        for run, *columns in rows.fetchall():
            content = dict(zip(names, columns, strict=True))
            if "incomplete" in content:
                content["incomplete"] = bool(content["incomplete"])
            yield run, kind(**content)

    def _insert(self, table: str, rows: Iterator[dict[str, Any]] | Sequence[dict[str, Any]]) -> int:
        """Insert rows into a table.

        Args:
            table: The name of the table.
            rows: The rows; each maps the names of columns to values.

        Returns:
            The SQLite row ID of the last row; 0 without rows.
        """
        number = 0
        for row in rows:
            columns, places = ", ".join(row), ", ".join("?" * len(row))
            cursor = self._connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({places})", list(row.values()))
            number = cursor.lastrowid or 0
        return number

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Return a context manager for a write transaction: commit if the body completes, roll back if it raises."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")


def _current_time() -> str:
    """Return the current time in UTC, as ISO 8601 with seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _create(path: Path) -> None:
    """Create an empty history at `path`; do nothing if another process creates it at the same time.

    The database is created under a temporary name and then linked to its path. No process sees an incomplete file.

    Raises:
        HistoryError: The file can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".diopi-history-", dir=path.parent) as folder:
            new = Path(folder) / "new.sqlite"
            connection = sqlite3.connect(new, isolation_level=None)
            connection.executescript(
                f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION};"
                f"PRAGMA journal_mode = WAL; BEGIN; {TABLES} COMMIT;"
            )
            connection.close()
            with suppress(FileExistsError):
                os.link(new, path)
    except (OSError, sqlite3.Error) as error:
        raise HistoryError(f"the history {path} can't be created: {error}; pass another file as --db") from error


def _check_file(connection: sqlite3.Connection, path: Path) -> None:
    """Raise HistoryError if the database is not a history of this version, or is damaged."""
    (application,), (version,) = (
        connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
    )
    if application != APPLICATION_ID:
        raise HistoryError(f"{path} is a database of another program; pass another file as --db")
    if version != VERSION:
        raise HistoryError(
            f"{path} has version {version} of the tables, and this diopi-test reads version {VERSION}: "
            + ("use a newer diopi-test" if version > VERSION else "add the logs to a new file")
        )
    (message,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if message != "ok":
        raise HistoryError(f"{path} is damaged: {message}; restore a copy, or add the logs to a new file")
