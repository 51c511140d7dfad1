"""Every function of the interface survives any handle: NULL, released, of another kind, or an arbitrary address."""

import threading

import numpy as np
import pytest

from diopi_proto.interface import runtime_prototypes
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from lib_rt import Context, Generator, Tensor
from lib_rt.library import ffi, last_error, lib

HANDLES = {
    "diopiContextHandle_t": "context",
    "diopiTensorHandle_t": "tensor",
    "diopiConstTensorHandle_t": "tensor",
    "diopiGeneratorHandle_t": "generator",
    "diopiConstGeneratorHandle_t": "generator",
}
TAKE_HANDLES = [p for p in runtime_prototypes().values() if any(q.c_type in HANDLES for q in p.parameters)]


def good(parameter: Parameter) -> object:
    """Return a valid argument, except for handles."""
    kind = parameter.c_type.removeprefix("const ")
    return ffi.new(kind) if kind.endswith("*") else 0


def call(prototype: Prototype, handles: dict[str, object]) -> int:
    """Call a function of the runtime with these handles, and return its error code."""
    kinds = [HANDLES.get(parameter.c_type) for parameter in prototype.parameters]
    arguments = [handles[k] if k else good(p) for k, p in zip(kinds, prototype.parameters, strict=True)]
    arguments = [
        ffi.cast(p.c_type, a) if k else a for k, p, a in zip(kinds, prototype.parameters, arguments, strict=True)
    ]
    return int(getattr(lib, prototype.name)(*arguments))


@pytest.fixture
def handles(context: Context) -> dict[str, object]:
    """Return valid handles by kind."""
    tensor, generator = Tensor.from_numpy(context, np.zeros(16, np.uint8)), Generator(context, 1)
    living[:] = [tensor, generator]
    return {"context": context.handle, "tensor": tensor.handle, "generator": generator.handle}


living: list[object] = []

DENSE_ONLY = {"diopiGetTensorCrowIndices", "diopiGetTensorColIndices", "diopiGetTensorValues"}


@pytest.mark.parametrize("prototype", TAKE_HANDLES, ids=lambda prototype: prototype.name)
def test_valid_handles_are_accepted(prototype: Prototype, handles: dict[str, object]) -> None:
    assert call(prototype, handles) == (1 if prototype.name in DENSE_ONLY else 0)


@pytest.mark.parametrize("prototype", TAKE_HANDLES, ids=lambda prototype: prototype.name)
@pytest.mark.parametrize("invalid", ["null", "dead", "other kind", "no handle", "inside a handle"])
def test_invalid_handles_are_rejected(
    prototype: Prototype, invalid: str, context: Context, handles: dict[str, object]
) -> None:
    for kind in {HANDLES[p.c_type] for p in prototype.parameters if p.c_type in HANDLES}:
        other_handles = [handle for name, handle in handles.items() if name != kind]
        pointer, message = {
            "null": (ffi.NULL, "is NULL"),
            "dead": (dead(kind, context), f"is a dead handle, expected a live {kind}"),
            "other kind": (other_handles[0], f"expected a live {kind}"),
            "no handle": (ffi.cast("void*", 0xDEADBEEF), "is not a handle of this runtime"),
            "inside a handle": (ffi.cast("char*", handles[kind]) + 8, "is not a handle of this runtime"),
        }[invalid]
        assert call(prototype, {**handles, kind: pointer}) == 1
        assert message in last_error()


def dead(kind: str, context: Context) -> object:
    """Return the handle of an object that was closed."""
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
    if not results:  # it answers by its return value or changes what it is given
        assert prototype.name in {"diopiGetVersion", "diopiGeneratorSetState", "diopiGeneratorSetSeedAndOffset"}
        return
    for missing in results:
        arguments = []
        for parameter in prototype.parameters:
            kind = HANDLES.get(parameter.c_type)
            value = ffi.NULL if parameter is missing else handles[kind] if kind else good(parameter)
            arguments.append(ffi.cast(parameter.c_type, value) if kind else value)
        assert getattr(lib, prototype.name)(*arguments) == 1
        assert "NULL" in last_error()


def test_version_is_that_of_the_interface() -> None:
    assert ffi.string(lib.diopiGetVersion()) == b"1.0.0"


def test_the_first_device_is_current() -> None:
    index = ffi.new("diopiDeviceIndex_t*", 5)
    assert lib.diopiGetCurrentDeviceIndex(index) == 0
    assert index[0] == 0


def test_last_error_belongs_to_its_thread() -> None:
    assert lib.diopiGetTensorNumel(ffi.NULL, ffi.NULL) == 1
    elsewhere: list[str] = []
    thread = threading.Thread(target=lambda: elsewhere.append(last_error()))
    thread.start()
    thread.join()
    assert elsewhere == [""]
    assert last_error() == "diopiGetTensorNumel: the result pointer result is NULL"


def test_released_handles_are_not_reused_immediately(context: Context) -> None:
    seen = [dead("tensor", context) for _ in range(300)]
    assert len(set(seen)) == 300


def test_many_handles_are_valid_at_once(context: Context) -> None:
    tensors = [Tensor.from_numpy(context, np.array(i)) for i in range(5000)]
    assert [int(tensor.numpy()) for tensor in tensors] == list(range(5000))
