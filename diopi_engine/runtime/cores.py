"""Reserve the cores of a device, so that all processes of the machine share them.

Each device has a file with one byte per core. A process owns a core while it has the record lock of the core's byte.
The operating system releases the locks when the process ends for any reason.

Somebody may remove the file while cores are locked; locks of the removed file and of a new one do not exclude each
other. Therefore the bytes have offsets that no other program uses, and Linux lists all locks with their offsets in
`/proc/locks`. A process whose file was removed moves its locks to the new file with its next call.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from diopi_engine.proto.hgrt import Result
from diopi_engine.runtime.errors import InterfaceError

_SEARCH_BYTE = 64
"""The byte that a process locks while it searches for free cores and locks them; the bytes before it are cores."""

_SYSTEM_LOCKS = Path("/proc/locks")
"""The locks of all processes. Other systems than Linux do not have this file."""

_TAKE = fcntl.LOCK_EX | fcntl.LOCK_NB
"""The lock operation that fails instead of waiting if another process has the lock."""

_FLOCK = "hhqqi"
"""The format of `struct flock` in C: type, whence, start, length, process."""


class Cores:
    """The cores of a device as bit masks. Methods that change something must be called within `exclusive_access`.

    Args:
        folder: the folder of the file with the locks.
        device: the number of the device.
        count: the number of cores.

    Attributes:
        count: the number of cores.
        retained: the cores that this process has retained.
        used: the cores that contexts of this process use, retained or not.
    """

    def __init__(self, folder: Path, device: int, count: int) -> None:
        self._path = folder / f"device{device}.cores"
        self._offset = int.from_bytes(hashlib.sha256(os.fsencode(self._path.absolute())).digest()[:6]) << 8
        self._file = self._open()
        self._lock = threading.RLock()
        self.count = count
        self.retained = 0
        self.used = 0

    @contextmanager
    def exclusive_access(self) -> Iterator[None]:
        """Return a context manager in which other threads and processes can't take cores."""
        with self._lock:
            self._lock_byte(fcntl.LOCK_EX, _SEARCH_BYTE)
            while not self._is_at_path():
                self._move_locks()
                self._lock_byte(fcntl.LOCK_EX, _SEARCH_BYTE)
            try:
                yield
            finally:
                self._lock_byte(fcntl.LOCK_UN, _SEARCH_BYTE)

    @property
    def free(self) -> int:
        """The cores that no process owns."""
        with self._lock:
            listed = _list_locks(self._offset, self._offset + _SEARCH_BYTE)
            locked = {core for core in range(self.count) if self._offset + core in listed or self._is_locked(core)}
            return ~(cores_mask([*locked]) | self.retained | self.used) & ((1 << self.count) - 1)

    @property
    def available(self) -> int:
        """The unused cores that are available to a context: its retained cores, or free cores if it has none."""
        return self.retained & ~self.used if self.retained else self.free

    def retain(self, mask: int) -> None:
        """Retain free cores."""
        self._lock_cores(mask, _TAKE)
        self.retained |= mask

    def release(self, mask: int) -> None:
        """Release retained cores that no context uses."""
        self.retained &= ~mask
        self._lock_cores(mask, fcntl.LOCK_UN)

    def use(self, mask: int) -> None:
        """Take free or retained cores for a context."""
        self._lock_cores(mask & ~self.retained, _TAKE)
        self.used |= mask

    def end_use(self, mask: int) -> None:
        """Give back the cores of a context after use. Retained cores stay retained."""
        self.used &= ~mask
        self._lock_cores(mask & ~self.retained, fcntl.LOCK_UN)

    def _open(self) -> int:
        """Open the file of the cores, which is created if necessary, and return its descriptor."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(PermissionError):  # another user created the folder and made it writable for all
            self._path.parent.chmod(0o1777)
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        with suppress(PermissionError):  # another user owns the file and made it writable for all
            os.fchmod(file, 0o666)
        return file

    def _is_at_path(self) -> bool:
        """Return whether the file with the locks of this process is the one that other processes open."""
        try:
            return os.path.samestat(os.fstat(self._file), os.stat(self._path))
        except FileNotFoundError:
            return False

    def _move_locks(self) -> None:
        """Lock the cores of this process in the file that is at the path now, and close the former file."""
        former, self._file = self._file, self._open()
        for core in core_numbers(self.retained | self.used):
            with suppress(BlockingIOError):  # without /proc/locks, another process may have taken the core
                self._lock_byte(_TAKE, core)
        os.close(former)

    def _lock_cores(self, mask: int, operation: int) -> None:
        """Lock or unlock the bytes of the cores in a mask."""
        for core in core_numbers(mask):
            self._lock_byte(operation, core)

    def _lock_byte(self, operation: int, number: int) -> None:
        """Lock or unlock the byte of a core, or `_SEARCH_BYTE`."""
        fcntl.lockf(self._file, operation, 1, self._offset + number)

    def _is_locked(self, core: int) -> bool:
        """Return whether another process owns a core."""
        query = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, self._offset + core, 1, 0)
        return bool(struct.unpack(_FLOCK, fcntl.fcntl(self._file, fcntl.F_GETLK, query))[0] != fcntl.F_UNLCK)


def _list_locks(first: int, end: int) -> set[int]:
    """Return the offsets of bytes that other processes have locked in any file, as far as the system says.

    Args:
        first: the first offset of interest.
        end: the offset behind the last one.

    Returns:
        The offsets.
    """
    try:
        lines = _SYSTEM_LOCKS.read_text().splitlines()
    except OSError:
        return set()
    locks = [line.split() for line in lines if " -> " not in line]  # which waits for a lock
    ranges = [
        range(int(start), int(last) + 1)
        for *_, process, _, start, last in locks
        if last != "EOF" and int(process) != os.getpid()
    ]
    return {byte for locked in ranges if first <= locked.start and locked.stop <= end for byte in locked}


def core_numbers(mask: int) -> list[int]:
    """Return the numbers of the cores in a mask in ascending order."""
    return [core for core in range(mask.bit_length()) if mask >> core & 1]


def cores_mask(cores: Iterator[int] | list[int]) -> int:
    """Return the bit mask of the cores with these numbers."""
    return sum(1 << core for core in cores)


def retain(cores: Cores, count: int, left: int) -> int:
    """Retain `count` free cores and return the mask of them.

    Args:
        cores: the cores of a device.
        count: the number of cores to retain.
        left: the number of cores that must stay free, for requests of higher priority.

    Returns:
        The mask of the retained cores.

    Raises:
        InterfaceError: HG_ERROR_CORES_UNAVAILABLE if too few cores are free.
    """
    with cores.exclusive_access():
        free = core_numbers(cores.free)
        if len(free) < count + left:
            requirement = f"{count} cores, with {left} left for requests of higher priority"
            raise InterfaceError(
                Result.ERROR_CORES_UNAVAILABLE, f"{requirement}: {len(free)} of {cores.count} are free"
            )
        mask = cores_mask(free[:count])
        cores.retain(mask)
        return mask


def release(cores: Cores, mask: int) -> None:
    """Release retained cores; raise HG_ERROR_INVALID_ARGUMENT or HG_ERROR_IN_USE if that is not possible."""
    with cores.exclusive_access():
        if not mask or mask & ~cores.retained:
            raise InterfaceError(
                Result.ERROR_INVALID_ARGUMENT, f"can't release cores {mask:#x}: {cores.retained:#x} are retained"
            )
        if mask & cores.used:
            raise InterfaceError(Result.ERROR_IN_USE, f"cores {mask & cores.used:#x} are used by a context")
        cores.release(mask)
