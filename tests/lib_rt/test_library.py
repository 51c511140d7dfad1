"""`libdiopirt.so`: its exported symbols, and how it is found."""

import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, PackagePath
from pathlib import Path

import pytest

from diopi_proto.interface import runtime_prototypes
from diopi_proto.registration import SERVICES
from lib_rt import LibraryNotFoundError, installed, library
from lib_rt.errors import CallError
from lib_rt.installed import find_library


def output(tool: str, *arguments: str) -> str:
    """Return the output of a tool for the runtime library; skip the test if the tool is missing."""
    if shutil.which(tool) is None:
        pytest.skip(f"there is no {tool} here")
    return subprocess.run([tool, *arguments, str(library.path)], capture_output=True, text=True, check=True).stdout


def test_every_function_is_exported_and_strong() -> None:
    lines = [line.split() for line in output("nm", "-D", "--defined-only").splitlines()]
    exported = {name: kind for _, kind, name in lines}
    private = {name for name in exported if name.startswith("diopirt_")}
    assert set(exported) - private == {*runtime_prototypes(), *(service.register for service in SERVICES)}
    assert set(exported.values()) == {"T"}
    assert private == {name for name in dir(library.lib) if name.startswith("diopirt_") and "_service" not in name}


def test_the_library_has_a_soname() -> None:
    assert "Library soname: [libdiopirt.so]" in output("readelf", "-d")


def test_a_missing_library_raises_an_error_with_its_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DIOPIRT_LIBRARY", raising=False)

    def unknown(name: str) -> list[PackagePath]:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(installed, "PACKAGE", tmp_path)
    monkeypatch.setattr(installed, "files", unknown)
    with pytest.raises(LibraryNotFoundError, match=str(tmp_path)):
        find_library("libdiopirt.so", "DIOPIRT_LIBRARY")


def test_the_environment_selects_the_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chosen = tmp_path / "libchosen.so"
    monkeypatch.setenv("DIOPIRT_LIBRARY", str(chosen))
    with pytest.raises(LibraryNotFoundError, match=str(chosen)):
        find_library("libdiopirt.so", "DIOPIRT_LIBRARY")
    chosen.touch()
    assert find_library("libdiopirt.so", "DIOPIRT_LIBRARY") == chosen


def test_an_installed_library_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DIOPIRT_LIBRARY", raising=False)
    file = PackagePath("elsewhere/libdiopirt.so")
    file.dist = type("Distribution", (), {"locate_file": lambda self, path: tmp_path / path})()
    monkeypatch.setattr(installed, "PACKAGE", tmp_path)
    monkeypatch.setattr(installed, "files", lambda name: [PackagePath("other.py"), file])
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "libdiopirt.so").touch()
    assert find_library("libdiopirt.so", "DIOPIRT_LIBRARY") == tmp_path / "elsewhere" / "libdiopirt.so"


def test_services_have_the_numbers_of_the_c_library() -> None:
    """A registered function has the same number in the core as in Python."""
    lib, ffi = library.lib, library.ffi
    numbers = [getattr(lib, f"diopirt_{service.name}_service") for service in SERVICES]
    assert [*numbers, lib.diopirt_service_count] == list(range(len(SERVICES) + 1))
    device, current, found = (
        library.call_for_output(lib.diopirt_device_create, "diopirt_device_t"),
        lib.diopirt_device_current(),
        [],
    )
    library.check(lib.diopirt_device_use(device))
    for number, service in enumerate(SERVICES):
        library.check(getattr(lib, service.register)(ffi.cast(service.pointer, 1000 + number)))
    library.check(lib.diopirt_device_use(current))
    exchange = lib.diopirt_device_exchange
    found = [library.call_for_output(exchange, "diopirt_function_t", device, number, ffi.NULL) for number in numbers]
    assert [library.address(function) for function in found] == [1000 + number for number in numbers]
    with pytest.raises(CallError, match=f"service {len(SERVICES)}"):
        library.call_for_output(exchange, "diopirt_function_t", device, len(SERVICES), ffi.NULL)
    library.check(lib.diopirt_device_destroy(device))


def test_error_codes_become_exceptions() -> None:
    library.check(0)
    with pytest.raises(CallError, match=r"^NoRegisteredStreamSyncFunction"):
        library.check(5)


def test_handles_can_be_destroyed_while_cffi_holds_its_lock() -> None:
    program = (
        "from diopi_impl.host_runtime import HostRuntime\n"
        "from lib_rt import Context, Device, Generator\n"
        "from lib_rt.library import ffi\n"
        "device = Device(HostRuntime().functions())\n"
        "context, generator = Context(device), Generator(device, 1)\n"
        "with ffi._lock:\n"
        "    del context, generator, device\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.stderr, done.returncode) == ("", 0)
