"""The command line writes files completely or not at all, with the right mode, and never replaces a device."""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from commands import run_here

from diopi_test.run.output import check_writable, printable, write_text

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
needs_a_user = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


def mode(path: Path) -> int:
    """Return the permissions of a file."""
    return stat.S_IMODE(path.stat().st_mode)


def device(path: Path, like: str) -> Path:
    """Create a device file like another one."""
    os.mknod(path, stat.S_IFCHR | 0o666, os.stat(like).st_rdev)
    return path


@pytest.fixture
def umask() -> object:
    """Set the file mode creation mask 027 during a test."""
    before = os.umask(0o027)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_a_new_file_has_the_mode_of_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write_text(path, "text")
    assert (path.read_text(), mode(path)) == ("text", 0o640)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.usefixtures("umask")
def test_an_existing_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("before")
    path.chmod(0o604)
    write_text(path, "after")
    assert (path.read_text(), mode(path)) == ("after", 0o604)


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_is_followed_and_not_replaced(tmp_path: Path, exists: bool) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "report.json", tmp_path / "latest.json"
    if exists:
        target.write_text("before")
    link.symlink_to(target)
    check_writable(link)
    write_text(link, "after")
    assert link.is_symlink()
    assert target.read_text() == "after"


def test_a_report_can_be_written_to_a_fifo(tmp_path: Path) -> None:
    path, contents = tmp_path / "pipe", []
    os.mkfifo(path)
    check_writable(path)
    reader = threading.Thread(target=lambda: contents.append(path.read_text()))
    reader.start()
    write_text(path, "text")
    reader.join()
    assert contents == ["text"]
    assert path.is_fifo()


@needs_root
def test_a_report_can_be_written_to_a_device(tmp_path: Path) -> None:
    path = device(tmp_path / "null", "/dev/null")
    check_writable(path)
    write_text(path, "text")
    assert path.is_char_device()


@needs_root
def test_a_full_device_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        write_text(device(tmp_path / "full", "/dev/full"), "text")


def test_a_full_disk_leaves_the_existing_file_unchanged(tmp_path: Path) -> None:
    """A limit on the size of files simulates a full disk: writing beyond it fails in the same way."""
    path = tmp_path / "report.json"
    path.write_text("before")
    script = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "sys.dont_write_bytecode = True;"  # Python would store truncated modules
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096));"
        f"from diopi_test.run.output import write_text; from pathlib import Path\n"
        f"try: write_text(Path({str(path)!r}), 'x' * 10000)\n"
        "except OSError: sys.exit(5)"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 5
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_path_that_can_not_be_written_is_rejected_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        check_writable(tmp_path / "nowhere" / "report.json")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere" / "report.json")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        check_writable(tmp_path / "link")


@needs_a_user
def test_a_path_without_permission_is_rejected_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.touch(mode=0o444)
    with pytest.raises(PermissionError, match=r"report\.json"):
        check_writable(path)
    tmp_path.chmod(0o555)
    with pytest.raises(PermissionError, match="folder"):
        check_writable(tmp_path / "other.json")


def test_a_failed_write_of_a_report_is_reported(tmp_path: Path) -> None:
    done = run_here("mutation-test", "-k", "diopiCopyInp", "-n", 1, "--json", "/dev/full")
    assert done.returncode == 3
    assert "Error: /dev/full can't be written: [Errno 28] No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert Path("/dev/full").is_char_device()


@pytest.mark.parametrize("character", ["\u061c", "\u200f", "\u202e", "\u2066", "\u2069"])
def test_characters_that_change_the_direction_of_text_are_escaped(character: str) -> None:
    assert printable(f"passed{character}deliaf") == f"passed\\u{ord(character):04x}deliaf"
