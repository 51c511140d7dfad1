"""The baseline on disk: one HDF5 file per function with an index and one block of data.

    /index   uint8, the JSON text that lists the cases; it refers to each array by a span of the block
    /data    uint8, the block: the bytes of all arrays in sequence, compressed
    attributes: format, function, level, proto_version, key, versions, index_sha256, data_sha256

A span locates an array in the block: its offset in bytes, NumPy type and shape; `planes` states that its bytes are
grouped by `to_byte_planes`. In the index, an expected result has `judged` if its values are one of several valid
results. A validator then decides about an actual result. It has `repeated`, its shape, if only one period of its
elements is stored.

HDF5 stores a small dataset in up to ten times its size, so all arrays share one block. A file is written under a
temporary name and renamed, so a partial file never exists. It is read once, as bytes, so that HDF5 receives exactly the
bytes that were checked. bfloat16 arrays are stored as uint16.

For a level whose inputs are regenerated, the file has shapes, layouts and a digest of the inputs instead of their
elements. The results are compacted by `diopi_test.baseline.compaction`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, final

import h5py
import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import VERSION_NUMBER, Dtype
from diopi_test.baseline import compaction
from diopi_test.baseline.errors import BaselineError as BaselineError
from diopi_test.baseline.files import read_regular_file, read_verified_file, write_atomically
from diopi_test.baseline.hdf5 import LIMIT as UNPACKED_LIMIT
from diopi_test.baseline.hdf5 import dataset_size, open_hdf5, read_attribute, read_dataset
from diopi_test.cases.case import CaseClass
from diopi_test.oracle.budget import Budget
from diopi_test.oracle.records import BaselineCase, BaselineTensor, Expected
from lib_rt.dtypes import to_numpy

FORMAT = 3
"""Version of the file layout."""

READABLE_FORMATS = (2, FORMAT)
"""The versions that can be read. In version 2, all units are stored in ulps; this is the only difference."""

SUFFIX = ".h5"
"""The suffix of a baseline file."""

ARRAYS = ("values", "budget_ulps", "unit", "flushed", "specified")
"""The arrays of an expected result. All but `values` are optional.

`budget_ulps` and `unit` store the unit of each element's budget (see `oracle.budget`), in ulps of the values or as an
absolute number; at most one of them is present.
"""

TEXTS = ("function", "level", "key", "index_sha256", "data_sha256")
"""The text attributes of a file."""

LIMIT = 512 * 2**20
"""The maximum number of bytes of a file: three times the size of the largest file, matrix products of level models."""


MAX_REPEATED_ELEMENTS = 2**26
"""The maximum number of elements of a result of which only one period is stored: four times the largest such result."""


@final
@dataclass(frozen=True)
class Provenance:
    """The origin of a file.

    Attributes:
        level: The name of the level.
        key: The digest of everything the contents depend on; a file with the right key is up to date.
        versions: The versions of the software that generated the file.
    """

    level: str
    key: str
    versions: Mapping[str, str]


@final
@dataclass
class _DataBlock:
    """The data block while it is written: the bytes of all arrays in sequence.

    Attributes:
        omits_inputs: Whether the file has no inputs, and compacted results.
        data: The bytes.
    """

    omits_inputs: bool
    data: bytearray = field(default_factory=bytearray)

    def add(self, array: NDArray[Any]) -> dict[str, Any]:
        """Append an array; return the span record that locates it."""
        raw = np.ascontiguousarray(array)
        span = {"offset": len(self.data), "type": raw.dtype.name, "shape": list(array.shape)}
        self.data += compaction.to_byte_planes(raw) if self.omits_inputs else raw.tobytes()
        return {**span, "planes": True} if self.omits_inputs else span


def baseline_file(folder: Path, function: str) -> Path:
    """Return the path of the baseline file of `function` in a level's folder."""
    return folder / f"{function}{SUFFIX}"


def write_baseline_file(
    path: Path, function: str, cases: Iterable[BaselineCase], provenance: Provenance, *, omit_inputs: bool = False
) -> None:
    """Write the cases of a function to `path` atomically.

    Args:
        path: The file.
        function: The name of the function.
        cases: The cases.
        provenance: The origin of the file.
        omit_inputs: Whether to store a digest instead of the inputs, and compacted results.

    Raises:
        BaselineError: The file can't be written (for example because the disk is full) or is too large to be read; an
            existing file is unchanged.
    """
    block = _DataBlock(omit_inputs)
    index = json.dumps([_encode_case(case, block) for case in cases], separators=(",", ":")).encode()
    for part, size in (("index", len(index)), ("data", len(block.data))):
        _check_size(f"its /{part}", path, size, UNPACKED_LIMIT)
    image = _file_image(function, index, block.data, provenance)
    _check_size("it", path, len(image), LIMIT)
    write_atomically(path, image)


def _check_size(part: str, path: Path, size: int, limit: int) -> None:
    """Raise BaselineError if a part of a file would be larger than the limit."""
    if size > limit:
        raise BaselineError(f"{path} can't be written: {part} would have {size} bytes, expected at most {limit}")


def _file_image(function: str, index: bytes, data: bytearray, provenance: Provenance) -> memoryview:
    """Return the bytes of a baseline file. HDF5 writes them to memory, because it ends the process when a disk is full.

    Args:
        function: The function of the cases.
        index: The index as JSON.
        data: The arrays of the cases, one after the other.
        provenance: The level, the key and the versions with which the file was generated.
    """
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
    return image.getbuffer()


class BaselineFile:
    """A baseline file, read into memory. Its index is verified at once, its data is unpacked and verified at first use.

    Raises BaselineError if the file is missing, not a baseline file, damaged, of another function or version, or if its
    digest differs from `sha256`.
    """

    def __init__(self, path: Path, sha256: str | None = None) -> None:
        self.path = path
        content = read_regular_file(path, LIMIT) if sha256 is None else read_verified_file(path, LIMIT, sha256)
        self.digest = sha256 or hashlib.sha256(content).hexdigest()
        self.size = len(content)
        self._content: bytes | None = content
        with open_hdf5(path, content) as file:
            self._check_version(file)
            self._texts = {name: read_attribute(file, name, str) for name in TEXTS}
            if self.function != path.stem:
                raise BaselineError(f"{path} has the cases of {self.function}, expected those of {path.stem}")
            self._index = self._read_part(file, "index")
            self._data_size = dataset_size(file, "data")

    @property
    def function(self) -> str:
        """The name of the function."""
        return self._texts["function"]

    @property
    def key(self) -> str:
        """The digest of everything that the contents depend on."""
        return self._texts["key"]

    @property
    def level(self) -> str:
        """The name of the level."""
        return self._texts["level"]

    @property
    def memory(self) -> int:
        """The approximate bytes of memory after everything is read; a decoded index takes 8 times its text."""
        return self._data_size + 8 * len(self._index)

    @cached_property
    def _records(self) -> dict[str, dict[str, Any]]:
        """The records of the index by case label."""
        with self._decoding("/index"):
            return {str(record["label"]): record for record in json.loads(self._index)}

    @contextmanager
    def _decoding(self, part: str) -> Iterator[None]:
        """Return a context manager that converts errors while decoding a part of the index into BaselineErrors."""
        try:
            yield
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise BaselineError(f"{self.path} is damaged: {part} can't be decoded: {reason}") from error

    @property
    def labels(self) -> Sequence[str]:
        """The labels of the cases, in order."""
        return list(self._records)

    def dtype(self, label: str) -> Dtype:
        """Return the element type under test of a case."""
        with self._decoding(label):
            return Dtype[self._records[label]["dtype"]]

    def case_class(self, label: str) -> CaseClass:
        """Return the class of a case."""
        with self._decoding(label):
            return CaseClass(self._records[label].get("class", CaseClass.basic))

    @cached_property
    def _data(self) -> memoryview:
        """The decompressed data block, which is verified at first use."""
        assert self._content is not None
        with open_hdf5(self.path, self._content) as file:
            data = self._read_part(file, "data")
        self._content = None  # frees memory
        return memoryview(data).toreadonly()

    def verify(self) -> None:
        """Read the data block once; raise BaselineError if its checksum differs."""
        self._data  # noqa: B018 - reading it is the check

    def case(self, label: str) -> BaselineCase:
        """Return a case with its data."""
        dtype, case_class = self.dtype(label), self.case_class(label)
        with self._decoding(label):
            record = self._records[label]
            return BaselineCase(
                function=self.function,
                label=label,
                dtype=dtype,
                arguments=self._arguments(label, record),
                expected={name: self._decode_expected(value) for name, value in record["expected"].items()},
                smoke=record.get("smoke", False),
                case_class=case_class,
            )

    def _arguments(self, label: str, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the stored or regenerated arguments of a case; raise BaselineError if their digest has changed."""
        if "inputs_sha256" in record:
            from diopi_test.baseline.regeneration import (
                regenerate_arguments,  # imports the references
            )

            return regenerate_arguments(self.path, self.function, self.level, label, record["inputs_sha256"])
        return {name: self._decode_argument(value) for name, value in record["arguments"].items()}

    def __iter__(self) -> Iterator[BaselineCase]:
        return (self.case(label) for label in self.labels)

    def _check_version(self, file: h5py.File) -> None:
        """Raise BaselineError if the file has another format or version of the standard."""
        for name, supported in (("format", READABLE_FORMATS), ("proto_version", (VERSION_NUMBER,))):
            if (version := read_attribute(file, name, int)) not in supported:
                raise BaselineError(
                    f"{self.path} is of another version: {name} is {version}, expected {supported[-1]}; "
                    "regenerate it with diopi-test gen-data"
                )

    def _read_part(self, file: h5py.File, name: str) -> bytearray:
        """Return the bytes of /index or /data; raise BaselineError if the digest differs."""
        content = read_dataset(file, name)
        expected, digest = self._texts[f"{name}_sha256"], hashlib.sha256(content).hexdigest()
        if digest != expected:
            raise BaselineError(f"{self.path} is damaged: sha256 of /{name} is {digest}, expected {expected}")
        return content

    def _read_array(self, span: Mapping[str, Any]) -> NDArray[Any]:
        """Return the array at a span of the data block."""
        shape, dtype = self._shape(span), self._numpy_type(span)
        if span.get("planes", False):
            return compaction.from_byte_planes(self._data, dtype, shape, span["offset"])
        return np.frombuffer(self._data, dtype, math.prod(shape), span["offset"]).reshape(shape)

    def _shape(self, span: Mapping[str, Any]) -> tuple[int, ...]:
        """Return the shape of the array at a span; raise ValueError if the span is not inside the block."""
        shape, offset = tuple(span["shape"]), span["offset"]
        end = offset + math.prod(shape) * self._numpy_type(span).itemsize
        if min(*shape, offset, 0) < 0 or end > self._data_size:
            raise ValueError(f"shape {shape} at {offset} is beyond the {self._data_size} bytes of /data")
        return shape

    @staticmethod
    def _numpy_type(span: Mapping[str, Any]) -> np.dtype[Any]:
        """Return the NumPy type of a span."""
        return to_numpy(Dtype.bfloat16) if span["type"] == "bfloat16" else np.dtype(span["type"])

    def _decode_argument(self, value: Any) -> Any:
        """Return the argument in a record of the index."""
        if isinstance(value, dict) and "tensor" in value:
            return BaselineTensor(self._read_array(value["tensor"]), Dtype[value["dtype"]], value["layout"])
        if isinstance(value, dict):
            return [self._decode_argument(entry) for entry in value["list"]]
        return tuple(value) if isinstance(value, list) else value

    def _decode_expected(self, value: Any) -> Expected | list[Expected] | None:
        """Return the expected result, or list of results, in a record of the index; None for an omitted result."""
        if value is None:
            return None
        if isinstance(value, list):
            return [self._decode_expected_array(entry) for entry in value]
        return self._decode_expected_array(value)

    def _decode_expected_array(self, value: Mapping[str, Any]) -> Expected:
        """Return one expected result tensor with its budget."""
        arrays = {name: self._read_array(value[name]) for name in ARRAYS if name in value}
        dtype, ulps, unit = Dtype[value["dtype"]], arrays.pop("budget_ulps", None), arrays.pop("unit", None)
        budget = None if unit is None else Budget(unit)
        if ulps is not None:
            budget = Budget.from_ulps(compaction.widen_ulps(ulps), arrays["values"], dtype)
        expected = Expected(
            dtype=dtype,
            layout=value["layout"],
            budget=budget,
            values=arrays["values"],
            flushed=arrays.get("flushed"),
            specified=arrays.get("specified"),
            needs_validator=value.get("judged", False),
        )
        return expected.repeat(_repeated_shape(value["repeated"])) if "repeated" in value else expected


def _repeated_shape(value: Any) -> tuple[int, ...]:
    """Return the shape of a repeated result; raise ValueError if it has too many elements."""
    shape = tuple(map(int, value))
    if min(shape, default=0) < 0 or math.prod(shape) > MAX_REPEATED_ELEMENTS:
        raise ValueError(f"a repeated result has the shape {shape}, expected at most {MAX_REPEATED_ELEMENTS} elements")
    return shape


def _encode_case(case: BaselineCase, block: _DataBlock) -> dict[str, Any]:
    """Return the record of a case for the index, and append its arrays to the block."""
    record: dict[str, Any] = {
        "label": case.label,
        "dtype": case.dtype.name,
        "arguments": {name: _encode_argument(value, block) for name, value in case.arguments.items()},
        "expected": {name: _encode_expected(value, block) for name, value in case.expected.items()},
    }
    if block.omits_inputs:
        record["inputs_sha256"] = compaction.argument_digest(case.arguments)
    if case.smoke:
        record["smoke"] = True
    if case.case_class is not CaseClass.basic:
        record["class"] = case.case_class.value
    return record


def _encode_argument(value: Any, block: _DataBlock) -> Any:
    """Return the record of an argument, and append its arrays to the block."""
    if isinstance(value, BaselineTensor):
        span = {"shape": list(value.values.shape)} if block.omits_inputs else block.add(value.values)
        return {"tensor": span, "dtype": value.dtype.name, "layout": value.layout}
    if isinstance(value, list):
        return {"list": [_encode_argument(entry, block) for entry in value]}
    return list(value) if isinstance(value, tuple) else value


def _encode_expected(value: Expected | list[Expected] | None, block: _DataBlock) -> Any:
    """Return the record of an expected result, and append its arrays to the block."""
    if isinstance(value, list):
        return [_encode_expected(entry, block) for entry in value]
    if value is None:
        return None
    record: dict[str, Any] = {"dtype": value.dtype.name, "layout": value.layout}
    if block.omits_inputs:
        shape = value.values.shape
        value = compaction.compact_expected(compaction.extract_period(value))
        record |= {"repeated": list(shape)} if value.values.shape != shape else {}
    else:
        value = replace(value, values=_storable_values(value))
    arrays = {
        "values": value.values,
        **_stored_units(value, block),
        "flushed": value.flushed,
        "specified": value.specified,
    }
    record |= {name: block.add(array) for name, array in arrays.items() if array is not None}
    if value.needs_validator:
        record["judged"] = True
    return record


def _stored_units(expected: Expected, block: _DataBlock) -> dict[str, NDArray[Any]]:
    """Return the units of a budget by the name of the array that stores them.

    Units are stored in ulps, which compress well, and in float32, which is precise enough. If one of them exceeds the
    range of float32, they are stored as absolute numbers.
    """
    if expected.budget is None:
        return {}
    with np.errstate(over="ignore"):
        ulps = expected.budget.to_ulps(expected.values, expected.dtype).astype(np.float32)
    if not np.isfinite(ulps).all():
        return {"unit": expected.budget.unit}
    return {"budget_ulps": compaction.round_up_ulps(ulps) if block.omits_inputs else ulps}


def _storable_values(expected: Expected) -> NDArray[Any]:
    """Return the expected values in the type in which they are stored.

    Values of half-precision results are stored in float32, which has at least 13 more bits, unless one of them becomes
    infinite or 0 in float32. All other values keep their type.
    """
    if expected.dtype in (Dtype.float16, Dtype.bfloat16):
        with np.errstate(all="ignore"):
            rounded = expected.values.astype(np.float32)
        same_kind = np.isfinite(rounded) == np.isfinite(expected.values)
        if (same_kind & ((rounded == 0) == (expected.values == 0))).all():
            return rounded
    return expected.values
