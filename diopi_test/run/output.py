"""Output of the command line: files and the terminal."""

from __future__ import annotations

import io
import os
import secrets
import stat
import sys
from pathlib import Path


def check_writable(path: Path) -> None:
    """Raise OSError if a file can't be written to `path`; callers check this before they begin long work."""
    target = _target(path)
    folder = target.parent
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(f"{path} is not writable")
    if _is_written_in_place(path):
        return
    if not folder.is_dir():
        raise FileNotFoundError(f"folder {folder} does not exist")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"folder {folder} is not writable")


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path`, as `write_bytes` does; OSError if that fails."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path`; raise OSError if that fails.

    A regular file is replaced completely or not at all. An existing file retains its mode; a new one has the mode that
    the umask specifies. If `path` is a link, the target of the link is replaced. Devices and FIFOs are written to
    directly.
    """
    if _is_written_in_place(path):
        path.write_bytes(content)
    else:
        _replace(_target(path), content)


def _is_written_in_place(path: Path) -> bool:
    """Return whether the path is a device or a pipe, which must not be replaced by a file."""
    return path.exists() and not path.is_file()


def _target(path: Path) -> Path:
    """Return the path that `path` refers to after all links; it need not exist."""
    return Path(os.path.realpath(path))


def _replace(path: Path, content: bytes) -> None:
    """Write a temporary file and rename it to `path`, so that readers never see a partial file."""
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            if path.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
"""Visible text for each control character, by code; line feeds and tabs remain."""

_BIDIRECTIONAL = {
    code: f"\\u{code:04x}" for code in (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}
"""Characters of the Unicode bidirectional algorithm, which reorder the text around them."""


def printable(text: str) -> str:
    """Return `text` with escapes for control characters (including bidirectional controls) and unpaired surrogates."""
    return text.translate(_CONTROL | _BIDIRECTIONAL).encode("utf-8", "backslashreplace").decode("utf-8")


class Terminal(io.TextIOBase):
    """Standard output that never raises an exception when text is written.

    Characters that the encoding lacks are escaped. If writing fails, this text and all later text are dropped.
    """

    def write(self, text: str) -> int:
        """Write and flush the text. If this fails (no reader, full disk), drop this text and all later text.

        Args:
            text: the text.

        Returns:
            The length of the text, even if it was dropped.
        """
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        try:
            sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
            sys.stdout.flush()
        except (OSError, ValueError, AttributeError):
            self._give_up()
        return len(text)

    def isatty(self) -> bool:
        """Return whether standard output is a terminal."""
        try:
            return sys.stdout.isatty()
        except (ValueError, AttributeError):
            return False

    def fileno(self) -> int:
        """Return the file descriptor; raise OSError if there is none."""
        try:
            return sys.stdout.fileno()
        except (ValueError, AttributeError) as error:
            raise OSError("there is no standard output") from error

    @property
    def encoding(self) -> str:  # type: ignore[override]  # read-only in the base
        """Return the encoding of standard output."""
        return getattr(sys.stdout, "encoding", None) or "utf-8"

    @staticmethod
    def _give_up() -> None:
        """Stop writing, so that buffered output causes no error at the end of the process."""
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for as long as the process lives


MAX_MESSAGE = 10_000
"""Maximum number of characters of a message; longer messages are shortened in the middle."""


def shorten(text: str) -> str:
    """Return the text in printable form, with the middle left out if it is too long."""
    if len(text) <= MAX_MESSAGE:
        return printable(text)
    half = MAX_MESSAGE // 2
    return printable(f"{text[:half]} … {len(text) - 2 * half} characters left out … {text[-half:]}")
