"""Run a bundle on a target through a connection, and store the results that it streams."""

from __future__ import annotations

import shutil
import signal
import struct
import subprocess
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, final

from diopi_impl.numerics.reading import SUFFIX
from diopi_test.target.bundle import BundleHeader
from diopi_test.target.connection import TargetConnection, TargetError, describe_errors, read_status
from diopi_test.target.encoding import KEY_BYTES
from diopi_test.target.records import END, FILE_HEADER, MAGIC, RECORD_HEADER, VERSION, FileKind
from diopi_test.target.results import CALL, GUARDS, LOSS, VENDOR, LossKind

RUNNER, CASES, LIBRARY = "diopi-runner", "cases.diopi", "libdiopi_impl.so"
"""The names of the files on the target."""

WITH_FORK, WITH_DLOPEN, WITH_FILES = ", fork", ", dlopen", ", files"
"""Texts in the version of a runner that makes the calls in a child process, whose end the runner itself reports; that
loads the vendor's library, instead of containing the vendor; that opens files, instead of using only standard input and
output."""

FAILED = 3
"""The exit status of a runner that can't run the cases."""

MAX_FRUITLESS_ATTEMPTS = 10
"""After this number of consecutive starts of the runner that complete no group of calls, the run ends."""

SIGNAL_STATUS = 128
"""What a shell adds to the number of a signal in the exit status of a process that the signal ended."""

SIGNALS_OF_OTHERS = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGPIPE, signal.SIGTERM})
"""The signals with which the system or a lost connection may end the runner, so that the vendor is not the cause."""

CHECK_SECONDS = 0.5
"""The interval in seconds at which a wait for results checks whether the run was interrupted."""

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 10.0
"""Pauses in seconds between starts of the runner that complete no group: each is twice the previous one, at most the
second number. The pause after the first such start is twice the first number."""


@final
@dataclass(frozen=True, kw_only=True)
class TargetFiles:
    """The files that a run copies to the target.

    Attributes:
        runner: the runner.
        cases: the bundle.
        library: the vendor's library; it is not copied if the runner contains the vendor.
    """

    runner: Path
    cases: Path
    library: Path


class _CutError(Exception):
    """The stream of results ended, or was damaged, before the last record."""


@final
class StreamedResults:
    """The local file with the results of a target, which contains only complete groups of calls.

    Args:
        file: The file, open for writing.
        identity: The identity of the bundle.

    Attributes:
        place: where the runner continues after the last complete group: the position of the case in the bundle, and the
            number of the next group.
        has_vendor: whether the description of the vendor has arrived.
        is_complete: whether the runner has reached the end of the bundle.
        begun: the position of the case and the number of the group of the last call that began.
        pending: the records of the group that has begun and is not complete.
        changed: the condition that is notified when `place`, `has_vendor` or `is_complete` changes.
    """

    def __init__(self, file: BinaryIO, identity: int) -> None:
        self._file = file
        self._identity = identity
        self.changed = threading.Condition()
        self.place = (0, 0)
        self.has_vendor = self.is_complete = False
        self.pending = bytearray()
        self.begun = (0, 0)
        file.write(FILE_HEADER.pack(MAGIC, VERSION, FileKind.results, identity, 0))

    def receive(self, stream: IO[bytes]) -> None:
        """Store the results of one start of the runner until it reaches the end of the bundle.

        Args:
            stream: The standard output of the runner.

        Raises:
            _CutError: The stream ended before, or a record is damaged.
            TargetError: The stream is not the output of a runner with this bundle.
        """
        self.pending.clear()
        header = _read_exactly(stream, FILE_HEADER.size)
        magic, version, kind, identity, _ = FILE_HEADER.unpack(header)
        if (magic, version, kind, identity) != (MAGIC, VERSION, FileKind.results, self._identity):
            raise TargetError(
                f"the target wrote {header[:16]!r} instead of results; --target must pass output unchanged"
            )
        while not self.is_complete:
            record = _read_exactly(stream, RECORD_HEADER.size)
            tag, checksum, size = RECORD_HEADER.unpack(record)
            payload = _read_exactly(stream, size)
            if zlib.crc32(payload) != checksum:
                raise _CutError
            self._store(tag, payload, record + payload)

    def _store(self, tag: bytes, payload: bytes, record: bytes) -> None:
        """Add a record to the group that has begun, and write the group if this record completes it.

        The description of the vendor belongs to no group and is written at once, if it is the first one.

        Args:
            tag: the kind of the record.
            payload: the content of the record.
            record: the whole record, with its checksum.
        """
        if tag == VENDOR:
            if not self.has_vendor:
                self._file.write(record)
                self._file.flush()
            with self.changed:
                self.has_vendor = True
                self.changed.notify_all()
            return
        if tag == CALL:
            self.begun = struct.unpack_from("<qq", payload, KEY_BYTES)
        self.pending += record
        if tag in (GUARDS, LOSS, END):
            self._complete_group(is_last=tag == END)

    def _complete_group(self, *, is_last: bool = False) -> None:
        """Write the records of the group."""
        self._file.write(self.pending)
        self._file.flush()
        self.pending.clear()
        position, group = self.begun
        with self.changed:
            self.place, self.is_complete = (position, group + 1), is_last
            self.changed.notify_all()

    def add_loss(self, kind: LossKind, value: int) -> None:
        """Complete the group that has begun with a record of how the process ended that made its calls.

        The next start of the runner then continues after this group.

        Args:
            kind: How the process ended.
            value: The number of the signal, or the exit status.
        """
        payload = struct.pack("<qq", kind, value)
        self.pending += RECORD_HEADER.pack(LOSS, zlib.crc32(payload), len(payload)) + payload
        self._complete_group()


def _read_exactly(stream: IO[bytes], size: int) -> bytes:
    """Return the next bytes of a stream; raise _CutError if it ends before."""
    content = stream.read(size)
    if len(content) < size:
        raise _CutError
    return content


@contextmanager
def run_on_target(
    connection: TargetConnection,
    files: TargetFiles,
    results: StreamedResults,
    timeout: float,
    check_interruption: Callable[[], None] = lambda: None,
) -> Iterator[TargetRun]:
    """Copy the files to the target, and run all cases there in the background.

    At the end of the context, the run is ended, and the files are deleted from the target.

    Args:
        connection: The connection.
        files: The files.
        results: The file of results.
        timeout: The time limit of a call in seconds.
        check_interruption: The function that is called repeatedly during a wait; it may raise KeyboardInterrupt.

    Yields:
        The run, after the description of the vendor has arrived.

    Raises:
        TargetError: The target can't be used.
    """
    runs = None
    try:
        runs = _prepare(connection, files, results, timeout)
        run = TargetRun(runs, results, BundleHeader(files.cases), check_interruption)
        run.wait_for_vendor()
        yield run
    finally:
        if runs is not None:
            runs.cancel()
        connection.remove_folder()


def _prepare(connection: TargetConnection, files: TargetFiles, results: StreamedResults, timeout: float) -> _RemoteRuns:
    """Copy the files to the target, and return the object that starts the runner; raise TargetError if this fails."""
    connection.create_folder()
    connection.copy(files.runner, RUNNER)
    version = connection.require_runner(files.runner, RUNNER)
    connection.copy(files.cases, CASES)
    words = [f"./{RUNNER}", CASES if WITH_FILES in version else f"- < {CASES}"]
    if WITH_DLOPEN in version:
        connection.copy(files.library, LIBRARY)
        words.append(f"./{LIBRARY}")
    command = " ".join([*words, f"--timeout {timeout:g}"])
    return _RemoteRuns(connection, results, command, has_fork=WITH_FORK in version)


@final
class TargetRun:
    """A run on a target in the background.

    Args:
        runs: The starts of the runner.
        results: The file of results.
        bundle: The bundle.
        check_interruption: The function that is called repeatedly during a wait.
    """

    def __init__(
        self,
        runs: _RemoteRuns,
        results: StreamedResults,
        bundle: BundleHeader,
        check_interruption: Callable[[], None],
    ) -> None:
        self._runs = runs
        self._check_interruption = check_interruption
        self._results = results
        self._bundle = bundle
        self._positions = {case: position for position, case in bundle.cases.items()}
        self._has_ended = False
        self._error: TargetError | None = None
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        """Run all cases in the background thread, and store the error if this fails."""
        try:
            self._runs.run_until_complete(self._bundle)
        except (TargetError, OSError) as error:
            self._error = error if isinstance(error, TargetError) else TargetError(str(error))
        with self._results.changed:
            self._has_ended = True
            self._results.changed.notify_all()

    def wait_for_vendor(self) -> None:
        """Wait until the description of the vendor has arrived; raise TargetError if the run fails before."""
        self._wait(lambda: self._results.has_vendor)

    def wait_for(self, cases: Iterable[str]) -> None:
        """Wait until all results of cases have arrived, or until the run is canceled.

        Args:
            cases: The IDs of the cases. Cases that are not in the bundle are ignored.

        Raises:
            TargetError: The run has ended with an error.
        """
        last = max((self._positions.get(case, 0) for case in cases), default=0)
        self._wait(lambda: self._results.is_complete or self._results.place[0] > last)

    def wait_for_end(self) -> None:
        """Wait until all results have arrived; raise TargetError if the run fails before."""
        self._wait(lambda: self._results.is_complete)

    def _wait(self, is_fulfilled: Callable[[], bool]) -> None:
        """Wait until a condition is fulfilled or the run has ended; raise TargetError if it failed before."""
        changed = self._results.changed
        with changed:
            while not changed.wait_for(lambda: is_fulfilled() or self._has_ended, CHECK_SECONDS):
                self._check_interruption()
        if not is_fulfilled() and self._error is not None:
            raise self._error


@final
class _RemoteRuns:
    """An object that starts the runner on the target as often as necessary to run all cases.

    Args:
        connection: The connection.
        results: The file of results.
        command: The command line that starts the runner with the first case.
        has_fork: Whether the runner makes the calls in a child process and reports how this process ended.
    """

    def __init__(self, connection: TargetConnection, results: StreamedResults, command: str, *, has_fork: bool) -> None:
        self._connection = connection
        self._results = results
        self._command = command
        self._has_fork = has_fork
        self._is_canceled = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None

    def cancel(self) -> None:
        """End the local process of the connection, and start no further runner. The caller ends the runner itself."""
        self._is_canceled.set()
        if self._process is not None:
            self._process.kill()

    def run_until_complete(self, bundle: BundleHeader) -> None:
        """Start the runner until it has reached the end of the bundle.

        A group of calls that is not complete is repeated if the connection was lost.

        Args:
            bundle: The bundle.

        Raises:
            TargetError: The runner can't run the cases, or `MAX_FRUITLESS_ATTEMPTS` starts in a row completed no group.
        """
        results, fruitless = self._results, 0
        while not results.is_complete and not self._is_canceled.is_set():
            place, reason = results.place, self._run_once()
            if results.place != place:
                fruitless = 0
                continue
            fruitless += 1
            if fruitless >= MAX_FRUITLESS_ATTEMPTS:
                case = f", during {bundle.case_at(results.begun)}" if results.pending else ""
                raise TargetError(f"the connection to the target was lost {fruitless} times in a row{case}: {reason}")
            self._is_canceled.wait(min(LONGEST_PAUSE, FIRST_PAUSE * 2**fruitless))

    def _run_once(self) -> str:
        """Return why the runner ended, which starts after the last complete group and whose results are stored.

        Raises:
            TargetError: The runner can't run the cases.
        """
        place = position, group = self._results.place
        start = f"--start-at {position} {group}" if position else ""
        kill = "if [ -f pid ]; then kill $(cat pid) 2>/dev/null; fi"
        self._process = self._connection.start(f"{kill}; {self._command} {start} & echo $! > pid; wait $!")
        errors, exit_status = _receive(self._process, self._results)
        status, reason = read_status(errors), describe_errors(errors, exit_status)
        if self._results.pending and status not in (None, FAILED) and not self._has_fork:
            self._add_end(status)
        elif status == FAILED and not self._results.is_complete and self._results.place == place:
            raise TargetError(f"the runner on the target can't run the cases: {reason}")
        return reason

    def _add_end(self, status: int) -> None:
        """Record the end of a runner without child process, unless a signal ended it that the vendor did not cause.

        Args:
            status: The exit status of the runner, as the shell on the target reported it.
        """
        number = status - SIGNAL_STATUS
        if number <= 0:
            self._results.add_loss(LossKind.by_exit, status)
        elif number not in SIGNALS_OF_OTHERS:
            self._results.add_loss(LossKind.by_signal, number)


def _receive(process: subprocess.Popen[bytes], results: StreamedResults) -> tuple[bytes, int]:
    """Store the results of one start of the runner; return its standard error and the exit status of the command."""
    assert process.stdout is not None
    assert process.stderr is not None
    errors: list[bytes] = []
    reader = threading.Thread(target=_read_to_end, args=(process.stderr, errors), daemon=True)
    reader.start()
    try:
        results.receive(process.stdout)
    except _CutError:
        pass
    except BaseException:
        process.kill()  # the runner may still have its standard error open, so the reader can't be waited for
        raise
    finally:
        process.stdout.close()
        exit_status = process.wait()
    reader.join()
    return b"".join(errors), exit_status


def _read_to_end(stream: IO[bytes], contents: list[bytes]) -> None:
    """Append the rest of a stream to a list, and close the stream."""
    with stream:
        contents.append(stream.read())


def copy_declarations(library: Path, results: Path) -> Mapping[Path, Path]:
    """Copy the files in which a vendor declares its claims and its arithmetic.

    They are next to its library, and the copies are next to the results of the library.

    Args:
        library: The library.
        results: The results.

    Returns:
        The paths of the copies, by the path of the original.
    """
    copies = {library.with_suffix(suffix): results.with_suffix(suffix) for suffix in (".claims.toml", SUFFIX)}
    copies = {original: copy for original, copy in copies.items() if original.exists()}
    for original, copy in copies.items():
        shutil.copyfile(original, copy)
    return copies
