"""The baseline on disk: one HDF5 file a function, holding an index and one block of data.

    /index   uint8, the JSON text that lists the cases; every array in it is a span of the block
    /data    uint8, the block, compressed
    attributes: format, function, level, proto_version, key, provenance, index_sha256, data_sha256

A small dataset costs HDF5 up to ten times its size, hence one block instead of a dataset an array. A file is written
under a temporary name and renamed, so there is never half of one. bfloat16 arrays are stored as uint16.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import VERSION_NUMBER, Dtype
from diopi_test.baseline import BaselineCase, BaselineTensor, Expected
from lib_rt.dtypes import to_numpy

FORMAT = 1
"""Version of the file layout."""

SUFFIX = ".h5"

PART_SUFFIX = ".part"
"""Of the file that is being written; a leftover of a killed run is removed by the next."""


class BaselineError(Exception):
    """A baseline file that can't be used; the message names it and what is wrong."""


@dataclass(frozen=True)
class Provenance:
    """Where a file comes from.

    Attributes:
        level: smoke or full.
        key: digest of everything the contents depend on; a file with the right key need not be made again.
        versions: of the software that made it.
    """

    level: str
    key: str
    versions: Mapping[str, str]


class _Block:
    """The data block while it is written."""

    def __init__(self) -> None:
        self._data = bytearray()

    def add(self, array: NDArray[Any]) -> dict[str, Any]:
        """Append an array; the span record that finds it again."""
        raw = np.ascontiguousarray(array)
        name = raw.dtype.name
        offset = len(self._data)
        self._data += raw.tobytes()
        return {"offset": offset, "type": name, "shape": list(array.shape)}

    def bytes(self) -> bytes:
        return bytes(self._data)


def file_of(folder: Path, function: str) -> Path:
    """Where the baseline of `function` lies in a level's folder."""
    return folder / f"{function}{SUFFIX}"


def write(path: Path, function: str, cases: Iterable[BaselineCase], provenance: Provenance) -> None:
    """Write the cases of one function to `path`, whole or not at all.

    Raises BaselineError when the file can't be written (a full disk, say); what was there before is kept.
    """
    block = _Block()
    index = json.dumps([_encode_case(case, block) for case in cases], separators=(",", ":")).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    image = _file_image(function, index, block.bytes(), provenance)
    temporary = path.with_name(f".{path.stem}-{os.getpid()}{PART_SUFFIX}")
    try:
        temporary.write_bytes(image)
        os.replace(temporary, path)
    except OSError as error:
        raise BaselineError(f"{path} can't be written: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _file_image(function: str, index: bytes, data: bytes, provenance: Provenance) -> bytes:
    """The file's bytes, made in memory: HDF5 ends the process when a disk is full."""
    image = BytesIO()
    with h5py.File(image, "w", libver="v110") as file:  # type: ignore[arg-type]  # the stubs know no file objects
        for name, content in (("index", index), ("data", data)):
            array = np.frombuffer(content, np.uint8)
            file.create_dataset(name, data=array, compression="gzip" if len(array) else None)
            file.attrs[f"{name}_sha256"] = hashlib.sha256(content).hexdigest()
        file.attrs["format"] = FORMAT
        file.attrs["function"] = function
        file.attrs["level"] = provenance.level
        file.attrs["proto_version"] = VERSION_NUMBER
        file.attrs["key"] = provenance.key
        file.attrs["versions"] = json.dumps(dict(sorted(provenance.versions.items())))
    return image.getvalue()


def key_of(path: Path) -> str | None:
    """The key of a readable file of this format; None when there is none there."""
    try:
        with h5py.File(str(path), "r") as file:
            return str(file.attrs["key"]) if file.attrs.get("format") == FORMAT else None
    except (OSError, KeyError):
        return None


class BaselineFile:
    """A baseline file opened for reading; its contents are read and verified at first use.

    Raises BaselineError when the file is missing, truncated, of another version, or a checksum fails.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with h5py.File(str(path), "r") as file:
                self._attributes = dict(file.attrs)
                self._check_version()
                self._index = self._read(file, "index")
        except (OSError, KeyError, RuntimeError) as error:
            raise BaselineError(f"{path} is not a readable baseline file: {error}") from error

    @property
    def function(self) -> str:
        """The function whose cases these are."""
        return str(self._attributes["function"])

    @property
    def digest(self) -> str:
        """Digest of index and data."""
        joined = f"{self._attributes['index_sha256']}{self._attributes['data_sha256']}"
        return hashlib.sha256(joined.encode()).hexdigest()

    @cached_property
    def _records(self) -> dict[str, dict[str, Any]]:
        return {record["label"]: record for record in json.loads(self._index)}

    @property
    def labels(self) -> Sequence[str]:
        """The labels of the cases, in order."""
        return list(self._records)

    def dtype(self, label: str) -> Dtype:
        """The element type under test of one case."""
        return Dtype[self._records[label]["dtype"]]

    @cached_property
    def _data(self) -> bytes:
        try:
            with h5py.File(str(self.path), "r") as file:
                return self._read(file, "data")
        except (OSError, KeyError, RuntimeError) as error:
            expected = self._attributes["data_sha256"]
            raise BaselineError(
                f"{self.path} is damaged: /data, whose sha256 is {expected}, can't be unpacked: {error}"
            ) from error

    def verify(self) -> None:
        """Read everything once; BaselineError if a checksum fails."""
        self._data  # noqa: B018 - reading it is the check

    def case(self, label: str) -> BaselineCase:
        """One case with its data."""
        record = self._records[label]
        return BaselineCase(
            self.function,
            label,
            Dtype[record["dtype"]],
            {name: self._decode_argument(value) for name, value in record["arguments"].items()},
            {name: self._decode_expected(value) for name, value in record["expected"].items()},
            record.get("smoke", False),
        )

    def __iter__(self) -> Iterator[BaselineCase]:
        return (self.case(label) for label in self.labels)

    def _check_version(self) -> None:
        for name, ours in (("format", FORMAT), ("proto_version", VERSION_NUMBER)):
            if (given := self._attributes.get(name)) != ours:
                raise BaselineError(
                    f"{self.path} is of another version: {name} is {given}, expected {ours}; "
                    "make it again with diopi-test gen-data"
                )

    def _read(self, file: h5py.File, name: str) -> bytes:
        content: bytes = file[name][()].tobytes()
        expected, given = self._attributes[f"{name}_sha256"], hashlib.sha256(content).hexdigest()
        if given != expected:
            raise BaselineError(f"{self.path} is damaged: sha256 of /{name} is {given}, expected {expected}")
        return content

    def _array(self, span: Mapping[str, Any]) -> NDArray[Any]:
        shape = tuple(span["shape"])
        dtype = to_numpy(Dtype.bfloat16) if span["type"] == "bfloat16" else np.dtype(span["type"])
        count = int(np.prod(shape))
        return np.frombuffer(self._data, dtype, count, span["offset"]).reshape(shape)

    def _decode_argument(self, value: Any) -> Any:
        if isinstance(value, dict) and "tensor" in value:
            return BaselineTensor(self._array(value["tensor"]), Dtype[value["dtype"]], value["layout"])
        if isinstance(value, dict):
            return [self._decode_argument(entry) for entry in value["list"]]
        return tuple(value) if isinstance(value, list) else value

    def _decode_expected(self, value: Any) -> Expected | list[Expected] | None:
        if value is None:
            return None
        if isinstance(value, list):
            return [self._one_expected(entry) for entry in value]
        return self._one_expected(value)

    def _one_expected(self, value: Mapping[str, Any]) -> Expected:
        return Expected(
            self._array(value["values"]),
            Dtype[value["dtype"]],
            value["layout"],
            self._array(value["blur"]) if "blur" in value else None,
            self._array(value["flushed"]) if "flushed" in value else None,
            self._array(value["specified"]) if "specified" in value else None,
            value.get("judged", False),
        )


def _encode_case(case: BaselineCase, block: _Block) -> dict[str, Any]:
    record = {
        "label": case.label,
        "dtype": case.dtype.name,
        "arguments": {name: _encode_argument(value, block) for name, value in case.arguments.items()},
        "expected": {name: _encode_expected(value, block) for name, value in case.expected.items()},
    }
    return {**record, "smoke": True} if case.smoke else record


def _encode_argument(value: Any, block: _Block) -> Any:
    if isinstance(value, BaselineTensor):
        return {"tensor": block.add(value.values), "dtype": value.dtype.name, "layout": value.layout}
    if isinstance(value, list):
        return {"list": [_encode_argument(entry, block) for entry in value]}
    return list(value) if isinstance(value, tuple) else value


def _encode_expected(value: Expected | list[Expected] | None, block: _Block) -> Any:
    if isinstance(value, list):
        return [_encode_expected(entry, block) for entry in value]
    if value is None:
        return None
    record: dict[str, Any] = {"values": block.add(_storable(value)), "dtype": value.dtype.name, "layout": value.layout}
    for name in ("blur", "flushed", "specified"):
        if (array := getattr(value, name)) is not None:
            record[name] = block.add(array)
    if value.judged:
        record["judged"] = True
    return record


def _storable(expected: Expected) -> NDArray[Any]:
    """Expected values of half-precision results in float32, which holds them with thirteen or more bits to spare.

    Not if one is out of its range: what is nearly zero has no sign to judge, zero has.
    """
    if expected.dtype in (Dtype.float16, Dtype.bfloat16):
        with np.errstate(all="ignore"):
            narrow = expected.values.astype(np.float32)
        same_kind = np.isfinite(narrow) == np.isfinite(expected.values)
        if (same_kind & ((narrow == 0) == (expected.values == 0))).all():
            return narrow
    return expected.values
