"""Every function of the runtime (`diopi_proto.runtime`) rejects invalid handles and missing result pointers.

A handle is invalid if it is NULL, released, of another kind, or an arbitrary address.
"""

import threading

import numpy as np
import pytest

from diopi_proto.interface import runtime_prototypes
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.types import VERSION
from lib_rt import Context, Generator, Tensor
from lib_rt.library import ffi, last_error, lib

HANDLES = {
    "diopiContextHandle_t": "context",
    "diopiTensorHandle_t": "tensor",
    "diopiConstTensorHandle_t": "tensor",
    "diopiGeneratorHandle_t": "generator",
    "diopiConstGeneratorHandle_t": "generator",
}
"""The kind of object behind a handle, by its C type."""

SUCCESS, ERROR = 0, 1
"""The values of diopiSuccess and diopiErrorOccurred."""

FUNCTIONS_WITH_HANDLES = [p for p in runtime_prototypes().values() if any(q.c_type in HANDLES for q in p.parameters)]


def valid_argument(parameter: Parameter) -> object:
    """Return a valid argument for a parameter that is not a handle: a new pointer to zeros, or the number 0."""
    c_type = parameter.c_type.removeprefix("const ")
    return ffi.new(c_type) if c_type.endswith("*") else 0


def call(prototype: Prototype, handles: dict[str, object]) -> int:
    """Call a function of the runtime with these handles, by kind, and return its error code."""
    kinds = [HANDLES.get(parameter.c_type) for parameter in prototype.parameters]
    arguments = [handles[k] if k else valid_argument(p) for k, p in zip(kinds, prototype.parameters, strict=True)]
    arguments = [
        ffi.cast(p.c_type, a) if k else a for k, p, a in zip(kinds, prototype.parameters, arguments, strict=True)
    ]
    return int(getattr(lib, prototype.name)(*arguments))


@pytest.fixture
def handles(context: Context) -> dict[str, object]:
    """Return valid handles of a context, a dense tensor and a generator, by kind."""
    tensor, generator = Tensor.from_numpy(context, np.zeros(16, np.uint8)), Generator(context, 1)
    referenced_objects[:] = [tensor, generator]
    return {"context": context.handle, "tensor": tensor.handle, "generator": generator.handle}


referenced_objects: list[object] = []
"""The objects behind the handles of the latest test, which would be released without references."""

SPARSE_ONLY = {"diopiGetTensorCrowIndices", "diopiGetTensorColIndices", "diopiGetTensorValues"}
"""The functions that accept only sparse tensors."""


@pytest.mark.parametrize("prototype", FUNCTIONS_WITH_HANDLES, ids=lambda prototype: prototype.name)
def test_valid_handles_are_accepted_except_dense_tensors_where_sparse_ones_are_needed(
    prototype: Prototype, handles: dict[str, object]
) -> None:
    assert call(prototype, handles) == (ERROR if prototype.name in SPARSE_ONLY else SUCCESS)


@pytest.mark.parametrize("prototype", FUNCTIONS_WITH_HANDLES, ids=lambda prototype: prototype.name)
@pytest.mark.parametrize("invalid", ["null", "dead", "other kind", "no handle", "inside a handle"])
def test_invalid_handles_are_rejected(
    prototype: Prototype, invalid: str, context: Context, handles: dict[str, object]
) -> None:
    for kind in {HANDLES[p.c_type] for p in prototype.parameters if p.c_type in HANDLES}:
        other_handles = [handle for name, handle in handles.items() if name != kind]
        pointer, message = {
            "null": (ffi.NULL, "is NULL"),
            "dead": (closed_handle(kind, context), f"is a dead handle, expected a live {kind}"),
            "other kind": (other_handles[0], f"expected a live {kind}"),
            "no handle": (ffi.cast("void*", 0xDEADBEEF), "is not a handle of this runtime"),
            "inside a handle": (ffi.cast("char*", handles[kind]) + 8, "is not a handle of this runtime"),
        }[invalid]
        assert call(prototype, {**handles, kind: pointer}) == ERROR
        assert message in last_error()


def closed_handle(kind: str, context: Context) -> object:
    """Create an object of a kind, close it, and return its handle, which is now invalid."""
    created = {
        "context": lambda: Context(context.device),
        "tensor": lambda: Tensor.from_numpy(context, np.ones(2)),
        "generator": lambda: Generator(context, 1),
    }[kind]()
    handle = created.handle
    created.close()
    return handle


@pytest.mark.parametrize("prototype", runtime_prototypes().values(), ids=lambda prototype: prototype.name)
def test_missing_result_pointers_are_rejected(prototype: Prototype, handles: dict[str, object]) -> None:
    results = [p for p in prototype.parameters if p.c_type.endswith("*") and p.c_type != "const diopiSize_t*"]
    if not results:  # the function returns its result, or only changes the generator
        assert prototype.name in {"diopiGetVersion", "diopiGeneratorSetState", "diopiGeneratorSetSeedAndOffset"}
        return
    for missing in results:
        arguments = []
        for parameter in prototype.parameters:
            kind = HANDLES.get(parameter.c_type)
            value = ffi.NULL if parameter is missing else handles[kind] if kind else valid_argument(parameter)
            arguments.append(ffi.cast(parameter.c_type, value) if kind else value)
        assert getattr(lib, prototype.name)(*arguments) == ERROR
        assert "NULL" in last_error()


def test_version_is_that_of_the_interface() -> None:
    assert ffi.string(lib.diopiGetVersion()).decode() == ".".join(map(str, VERSION))


def test_the_first_device_is_current() -> None:
    index = ffi.new("diopiDeviceIndex_t*", 5)
    assert lib.diopiGetCurrentDeviceIndex(index) == SUCCESS
    assert index[0] == 0


def test_last_error_belongs_to_its_thread() -> None:
    assert lib.diopiGetTensorNumel(ffi.NULL, ffi.NULL) == ERROR
    errors_of_other_thread: list[str] = []
    thread = threading.Thread(target=lambda: errors_of_other_thread.append(last_error()))
    thread.start()
    thread.join()
    assert errors_of_other_thread == [""]
    assert last_error() == "diopiGetTensorNumel: the result pointer result is NULL"


def test_released_handles_are_not_reused_immediately(context: Context) -> None:
    seen = [closed_handle("tensor", context) for _ in range(300)]
    assert len(set(seen)) == 300


def test_many_handles_are_valid_at_once(context: Context) -> None:
    tensors = [Tensor.from_numpy(context, np.array(i)) for i in range(5000)]
    assert [int(tensor.numpy()) for tensor in tensors] == list(range(5000))
