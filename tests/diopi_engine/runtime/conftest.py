"""The reference runtime as a library, in this process."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hgrt_client import Client


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The path of libhgrt.so; what uses it sees no cores but its own."""
    from diopi_engine.runtime.build import build

    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler here")
    return build(tmp_path_factory.mktemp("hgrt"))


@pytest.fixture(scope="session")
def locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder by which the processes of these tests tell one another which cores they have."""
    folder = tmp_path_factory.mktemp("locks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DIOPI_ENGINE_LOCKS", str(folder))
        yield folder


@pytest.fixture
def client(library: Path, locks: Path) -> Iterator[Client]:
    """A program that uses the library, and has given back all cores at its end."""
    client = Client(library)
    client.call("hgDeviceSetCurrent", 0)
    yield client
    assert [client.get("hgDeviceGetAttribute", device, 2) for device in (0, 1)] == [4, 4]
