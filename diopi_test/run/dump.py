"""Write all arrays of a case to one .npz file, called a dump, which NumPy can read.

    input.NAME            a tensor argument, before the call
    expected.NAME         the expected result
    budget.NAME           the largest accepted error of each element; missing if the result must be exact
    specified.NAME        whether each element is specified; missing if all are
    result.CALL.NAME      a result of the call CALL (see below)
    changed.CALL.NAME     an input that the call CALL changed, after the call
    info                  JSON text: the case, its attributes, and the element type, shape and strides of every tensor

NumPy has no bfloat16. These arrays are stored as float32, which represents them exactly, and `info` lists their names.

The names of calls are `first`, `second`, `waited`, `relaid` and `plain` for a valid call (see `CallSequence`), and
`refused` for a negative test. The calls of a chain are `call-1`, `call-2`, …, and those of a soak test are `first` and
`wrong` (the first wrong call).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.baseline.codec import to_json
from diopi_test.execution.call_record import CallRecord
from diopi_test.execution.description import describe_attribute, describe_tensor
from diopi_test.oracle.records import BaselineCase, BaselineTensor, Expected
from lib_rt.dtypes import to_numpy

SUFFIX = ".npz"
"""The suffix of the files with the arrays of a case."""

MAX_NAME_LENGTH = 150
"""The maximum number of characters of a file name before its suffix; file systems allow 255 bytes."""

Arrays = Iterator[tuple[str, NDArray[Any]]]
"""The arrays of a file, each with its name."""


class DumpError(Exception):
    """A dump that can't be written; the message names the file and the reason."""


def dump(case: BaselineCase, records: Mapping[str, CallRecord], folder: Path) -> Path:
    """Write a case and the records of its calls to a file in `folder`, which is created if necessary.

    The file is written completely or not at all, and replaces an earlier one. Without records, for example after a
    crash, it contains the arguments and the expected results.

    Args:
        case: The case.
        records: The records of its calls, by the name of the call.
        folder: The folder of the dumps.

    Returns:
        The path of the file.

    Raises:
        DumpError: The file can't be written.
    """
    path = folder / f"{file_name(case.id)}{SUFFIX}"
    arrays = dict([*_argument_arrays(case), *_expected_arrays(case), *_call_arrays(records)])
    info = json.dumps(_info(case, records, arrays), indent=1)
    plain = {name: _to_numpy_type(array) for name, array in arrays.items()}
    temporary = path.with_name(f".{secrets.token_hex(8)}{SUFFIX}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(temporary, "xb") as file:
            np.savez_compressed(file, allow_pickle=False, info=np.array(info), **plain)
        os.replace(temporary, path)
    except OSError as error:
        raise DumpError(f"the dump {path} can't be written: {error}") from error
    finally:
        with suppress(OSError):
            temporary.unlink()
    return path


def file_name(case: str) -> str:
    """Return a unique file name for a case that every file system accepts.

    The name is the case ID if it has only letters, digits and a few other characters, and is short. Otherwise, other
    characters are replaced by underscores, the name is shortened, and a part of the ID's digest is appended.
    """
    name = re.sub(r"\[(.*)\]$", r".\1", case)
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:MAX_NAME_LENGTH]
    digest = hashlib.sha256(case.encode(errors="surrogatepass")).hexdigest()
    return safe if safe == name else f"{safe}-{digest[:12]}"


def _argument_arrays(case: BaselineCase) -> Arrays:
    """Yield the tensor arguments of a case."""
    for name, value in case.arguments.items():
        for entry_name, entry in _entries(name, value):
            if isinstance(entry, BaselineTensor):
                yield f"input.{entry_name}", entry.values


def _expected_arrays(case: BaselineCase) -> Arrays:
    """Yield the expected results of a case, with their budgets and masks."""
    for name, value in case.expected.items():
        for entry_name, entry in _entries(name, value):
            if isinstance(entry, Expected):
                yield f"expected.{entry_name}", entry.values
                if entry.budget is not None:
                    yield f"budget.{entry_name}", entry.budget.limit
                if entry.specified is not None:
                    yield f"specified.{entry_name}", entry.specified


def _call_arrays(records: Mapping[str, CallRecord]) -> Arrays:
    """Yield the results of the calls, and the inputs that they changed."""
    for call, run in records.items():
        for record in run.tensors:
            if record.expected is not None:
                yield f"result.{call}.{record.name}", record.values
            elif record.before is not None and (record.before != record.after).any():
                yield f"changed.{call}.{record.name}", record.values
        for value in run.values:
            yield f"result.{call}.{value.name}", np.asarray(value.actual)


def _entries(name: str, value: Any) -> list[tuple[str, Any]]:
    """Return an argument or result with its name; for an array, return its entries with numbered names."""
    return [(f"{name}.{i}", entry) for i, entry in enumerate(value)] if isinstance(value, list) else [(name, value)]


def _info(case: BaselineCase, records: Mapping[str, CallRecord], arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the description of a case and its calls, in types that JSON can represent."""
    attributes = {name: value for name, value in case.arguments.items() if not _has_tensors(value)}
    return {
        "case": case.id,
        "function": case.function,
        "label": case.label,
        "dtype": case.dtype.name,
        "class": case.case_class.value,
        "attributes": {name: _as_json(value) for name, value in attributes.items()},
        "calls": {call: _tensors(run) for call, run in records.items()},
        "bfloat16": [name for name, array in arrays.items() if array.dtype == _BFLOAT16],
    }


def _has_tensors(value: Any) -> bool:
    """Return whether an argument is a tensor or an array of tensors."""
    return isinstance(value, (BaselineTensor, list))


def _as_json(value: Any) -> Any:
    """Return an attribute as JSON, or as text if JSON has no such type."""
    is_plain = value is None or isinstance(value, (bool, int, float, str, tuple))
    return to_json(value) if is_plain else describe_attribute(value)


def _tensors(run: CallRecord) -> dict[str, str]:
    """Return the memory layouts of the tensors of a call, by name."""
    return {entry.name: describe_tensor(entry.dtype, entry.shape, entry.strides, entry.offset) for entry in run.tensors}


_BFLOAT16 = to_numpy(Dtype.bfloat16)


def _to_numpy_type(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array in a type that NumPy supports: bfloat16 is the upper half of float32, including NaN."""
    if array.dtype != _BFLOAT16:
        return array
    bits = np.ascontiguousarray(array).reshape(array.shape).view(np.uint16)
    return (bits.astype(np.uint32) << 16).view(np.float32)
