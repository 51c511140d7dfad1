"""Malicious HDF5 files are rejected quickly and without decompressing their content."""

import os
import resource
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from diopi_test.baseline.errors import BaselineError
from diopi_test.baseline.hdf5 import open_hdf5, read_attribute, read_dataset

PIB = 2**50
PATH = Path("diopiSqrt.h5")


def image(make: Callable[[Any], object]) -> bytes:
    """Return the bytes of an HDF5 file that a function fills."""
    content = BytesIO()
    with h5py.File(content, "w") as file:
        make(file)
    return content.getvalue()


def fifo(folder: Path) -> str:
    """Create a named pipe and return its path."""
    os.mkfifo(folder / "fifo")
    return str(folder / "fifo")


Make = Callable[[Any, Path], object]

FORGED: dict[str, tuple[Make, str]] = {
    "nothing": (lambda file, folder: None, "/index is not there"),
    "group": (lambda file, folder: file.create_group("index"), "/index is a group, expected a dataset"),
    "type": (
        lambda file, folder: file.__setitem__("index", np.dtype("f8")),
        "/index is a datatype, expected a dataset",
    ),
    "floats": (lambda file, folder: file.create_dataset("index", data=[1.0]), r"of float64, expected a list of uint8"),
    "texts": (lambda file, folder: file.create_dataset("index", data=["a"]), r"of object, expected a list of uint8"),
    "scalar": (lambda file, folder: file.create_dataset("index", data=np.uint8(1)), r"has shape \(\) of uint8"),
    "no space": (lambda file, folder: file.create_dataset("index", dtype="u1"), r"has shape (None|\(\)) of uint8"),
    "matrix": (lambda file, folder: file.create_dataset("index", (2, 2), "u1"), r"has shape \(2, 2\) of uint8"),
    "huge": (lambda file, folder: file.create_dataset("index", (PIB,), "u1", chunks=(2**20,)), f"has {PIB} bytes"),
    "huge chunk": (
        lambda file, folder: file.create_dataset("index", (9,), "u1", chunks=(2**31,), maxshape=(None,)),
        "in chunks of 2147483648 bytes",
    ),
    "tiny chunks": (
        lambda file, folder: file.create_dataset("index", (2**27,), "u1", chunks=(1,)),
        "in chunks of 1 bytes",
    ),
    "another filter": (
        lambda file, folder: file.create_dataset("index", (9,), "u1", compression="lzf"),
        "not stored in the file itself",
    ),
    "soft link": (lambda file, folder: file.__setitem__("index", h5py.SoftLink("/index")), r"a link \(SoftLink\)"),
    "external link": (
        lambda file, folder: file.__setitem__("index", h5py.ExternalLink(fifo(folder), "/index")),
        r"a link \(ExternalLink\)",
    ),
    "external storage": (
        lambda file, folder: file.create_dataset("index", (9,), "u1", external=[(fifo(folder), 0, 9)]),
        "not stored in the file itself",
    ),
    "virtual": (
        lambda file, folder: file.create_virtual_dataset("index", h5py.VirtualLayout((9,), "u1")),
        "not stored in the file itself",
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_dataset_that_is_not_a_list_of_bytes_is_rejected(tmp_path: Path, name: str) -> None:
    make, message = FORGED[name]
    content = image(lambda file: make(file, tmp_path))
    with (
        pytest.raises(BaselineError, match=f"^{PATH} .*{message}"),
        open_hdf5(PATH, content) as file,
    ):
        read_dataset(file, "index")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 8 * 2**20  # KiB


ATTRIBUTES: dict[str, tuple[Callable[[Any], object], str]] = {
    "missing": (lambda attributes: None, "it has no attribute key"),
    "number": (lambda attributes: attributes.create("key", 1), "attribute key is .*1.*, expected str"),
    "list": (lambda attributes: attributes.create("key", ["a", "b"]), r"attribute key has shape \(2,\)"),
    "empty": (lambda attributes: attributes.create("key", h5py.Empty("f4")), "attribute key (has shape None|is)"),
    "bytes": (lambda attributes: attributes.create("key", np.void(b"a")), "attribute key is .*, expected str"),
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_an_attribute_of_another_type_is_rejected(name: str) -> None:
    make, message = ATTRIBUTES[name]
    content = image(lambda file: make(file.attrs))
    with (
        pytest.raises(BaselineError, match=f"^{PATH} .*: {message}"),
        open_hdf5(PATH, content) as file,
    ):
        read_attribute(file, "key", str)


def test_a_file_that_is_not_hdf5_is_rejected() -> None:
    with pytest.raises(BaselineError, match=f"^{PATH} "), open_hdf5(PATH, b"PK" * 1000):
        pass
