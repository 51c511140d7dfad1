"""HDF5 files in memory; the type and size of each part are checked before it is read.

Without these checks, a small file that is damaged or malicious could fill the memory, or make HDF5 open another file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import h5py
import numpy as np

from diopi_test.baseline.errors import BaselineError

LIMIT = 2**30
"""The maximum number of bytes of an unpacked dataset."""

CHUNKS = 2**16
"""The maximum number of chunks, the pieces in which HDF5 stores and compresses a dataset. Tiny chunks are slow."""

TEXT_LIMIT = 2**16
"""The maximum number of bytes of an attribute, such as a text of fixed length."""

GZIP = 1
"""The number of the filter for gzip (deflate) in HDF5's registry of filters."""

_HARD_LINK: Any = vars(h5py)["HardLink"]  # the stubs do not have it

T = TypeVar("T", str, int)


class UnexpectedContentError(Exception):
    """A file contains something unexpected; the message names the part but not the file."""


@contextmanager
def open_hdf5(path: Path, content: bytes) -> Iterator[h5py.File]:
    """Open the HDF5 file whose bytes are `content`; convert errors inside the context to BaselineErrors.

    Args:
        path: The path of the file, for messages.
        content: The bytes of the file.

    Yields:
        The file.

    Raises:
        BaselineError: The file is not an HDF5 file, or reading a part of it failed inside the context.
    """
    try:
        with h5py.File(BytesIO(content), "r") as file:  # type: ignore[arg-type]  # the stubs know no file objects
            yield file
    except (UnexpectedContentError, OSError, KeyError, RuntimeError, TypeError, ValueError, MemoryError) as error:
        raise BaselineError(f"{path} is not a readable baseline file: {error}") from error


def read_attribute(file: h5py.File, name: str, kind: type[T]) -> T:
    """Return a text or an integer that is stored as an attribute of the file.

    Args:
        file: The file.
        name: The name of the attribute.
        kind: The expected type, `str` or `int`.

    Returns:
        The value.

    Raises:
        UnexpectedContentError: There is no such attribute, or its value is not a single value of this type.
    """
    if name not in file.attrs:
        raise UnexpectedContentError(f"it has no attribute {name}")
    stored = file.attrs.get_id(name)
    if stored.shape != () or stored.dtype.itemsize > TEXT_LIMIT:
        raise UnexpectedContentError(
            f"attribute {name} has shape {stored.shape} of {stored.dtype}, expected one {kind.__name__}"
        )
    value = file.attrs[name]
    if not isinstance(value, np.integer if kind is int else str):
        raise UnexpectedContentError(f"attribute {name} is {value!r}, expected {kind.__name__}")
    return kind(value)


def dataset_size(file: h5py.File, name: str) -> int:
    """Return the size of a dataset in bytes, after checks that reading the dataset is safe.

    Args:
        file: The file.
        name: The name of the dataset.

    Returns:
        The number of bytes after decompression.

    Raises:
        UnexpectedContentError: The dataset is missing, does not consist of bytes, is too large, is stored outside the
            file, or is compressed by another method than gzip.
    """
    dataset = _dataset(file, name)
    if dataset.dtype != np.uint8 or dataset.ndim != 1:
        raise UnexpectedContentError(f"/{name} has shape {dataset.shape} of {dataset.dtype}, expected a list of uint8")
    if dataset.size > LIMIT:
        raise UnexpectedContentError(f"/{name} has {dataset.size} bytes, expected at most {LIMIT}")
    length = dataset.chunks[0] if dataset.chunks else LIMIT
    if length > LIMIT or dataset.size > length * CHUNKS:
        raise UnexpectedContentError(
            f"/{name} is stored in chunks of {length} bytes, expected at most {CHUNKS} of them"
        )
    properties = dataset.id.get_create_plist()
    filters = {properties.get_filter(number)[0] for number in range(properties.get_nfilters())}
    if dataset.external or dataset.is_virtual or filters - {GZIP}:
        raise UnexpectedContentError(f"/{name} is not stored in the file itself, plain or compressed by gzip")
    return int(dataset.size)


def read_dataset(file: h5py.File, name: str) -> bytearray:
    """Return the bytes of a dataset; raise UnexpectedContentError as `dataset_size` does."""
    content = bytearray(dataset_size(file, name))
    if content:
        file[name].read_direct(np.frombuffer(content, np.uint8))  # in place, because a copy may not fit in memory
    return content


def _dataset(file: Any, name: str) -> Any:  # the stubs lack several members
    """Return a dataset of the file itself; raise UnexpectedContentError for a link, or anything else."""
    link = file.get(name, getlink=True)  # check first, because following a link may open another file
    if type(link) is not _HARD_LINK:
        problem = "not there" if link is None else f"a link ({type(link).__name__})"
        raise UnexpectedContentError(f"/{name} is {problem}, expected a dataset of the file itself")
    dataset = file[name]
    if not isinstance(dataset, h5py.Dataset):
        raise UnexpectedContentError(f"/{name} is a {type(dataset).__name__.lower()}, expected a dataset")
    return dataset
