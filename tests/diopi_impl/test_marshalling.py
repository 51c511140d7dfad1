"""Every argument of every function arrives unchanged, from Python in C and from C in Python, and so does every result.

From Python in C: the test compiles a library that implements all functions. Each function records its arguments as a
JSON object (`argument_recorder.h`), sets its results, and returns success. The test calls it with distinct values.

From C in Python: the test exports a Python vendor that records its arguments (`recorder.py`) as a library, and calls
the library.
"""

import ctypes
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import recorder
from argument_values import OPERATORS, ArgumentValues
from toolchain import library

from diopi_impl import Box
from diopi_impl.export import export
from diopi_impl.host_runtime import HostRuntime
from diopi_impl.native import NativeVendor
from diopi_proto import headers
from diopi_proto import parameters as kinds
from diopi_proto.interface import lookup, prototypes
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.types import Error, Scalar
from lib_rt import Context, Device, Generator, Tensor
from lib_rt.library import address

RECORDER = Path(__file__).parents[1] / "helpers" / "argument_recorder.h"

SET_RESULT: Mapping[Any, str] = {
    kinds.NewOut: "allocate_result(ctx, {name}, {number} + 1);",
    kinds.OutF64: "*{name} = {number} + 0.1;",
    kinds.OutI64: "*{name} = -(1LL << 50) - {number};",
    kinds.OutBool: "*{name} = {number} % 2 == 1;",
    kinds.InOutSize: "*{name} = -(1LL << 50) - {number};",
}
"""For each kind of result, the C statement that sets the same value as `recorder.result_value`."""


def is_recorded(parameter: Parameter) -> bool:
    """Return whether the callee reads the argument; it only writes the other arguments."""
    kind = parameter.annotation
    return kind is kinds.InOutSize or (kind is not kinds.NewOuts and kind not in SET_RESULT)


def set_results(prototype: Prototype) -> Iterator[str]:
    """Yield the C statements that set the results of a function."""
    for number, parameter in enumerate(prototype.parameters[1:]):
        name = parameter.c_name
        if parameter.annotation is kinds.NewOuts:
            for i in range(len(prototype.result)):
                yield f"allocate_result(ctx, &{name}[{i}], {number + i} + 1);"
        elif parameter.annotation in SET_RESULT:
            yield SET_RESULT[parameter.annotation].format(name=name, number=number)


def recording_function(prototype: Prototype) -> str:
    """Return the C source of a function that records its arguments and sets its results."""
    recorded = [f"RECORD({p.c_name});" for p in prototype.parameters[1:] if is_recorded(p)]
    context = prototype.parameters[0].c_name
    body = [f"(void){context};", "begin_arguments();", *recorded, *set_results(prototype), "return diopiSuccess;"]
    return "\n    ".join([f"{headers.declaration(prototype)} {{", *body]) + "\n}\n"


def as_json(value: Any) -> Any:
    """Return the JSON value that `argument_recorder.h` records for an argument."""
    if isinstance(value, Box):
        return as_json(value.value)
    if isinstance(value, Tensor | Generator):
        return address(value.handle)
    if isinstance(value, Scalar):
        return {"dtype": int(value.dtype), "value": value.value}
    if isinstance(value, list | tuple):
        return [as_json(entry) for entry in value]
    return value


def expected_record(prototype: Prototype, arguments: list[Any]) -> dict[str, Any]:
    """Return the JSON object that the C function should record."""
    pairs = zip(prototype.parameters[1:], arguments, strict=True)
    return {parameter.c_name: as_json(value) for parameter, value in pairs if is_recorded(parameter)}


def check_results(context: Context, prototype: Prototype, arguments: list[Any]) -> None:
    """Assert that the caller received the results that the callee set."""
    for number, (parameter, value) in enumerate(zip(prototype.parameters[1:], arguments, strict=True)):
        for i, box in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(box, Box):
                expected = recorder.result_value(context, parameter.annotation, number + i)
                assert type(box.value) is type(expected)
                if isinstance(box.value, Tensor):
                    assert box.value.shape == expected.shape and box.value.context is context
                else:
                    assert box.value == expected


@pytest.fixture(scope="module")
def context() -> Iterator[Context]:
    """Yield a context on host-addressable memory."""
    with Device(HostRuntime().functions(), host_addressable=True) as device, Context(device) as opened:
        yield opened


@pytest.fixture(scope="module")
def recording_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a library in C whose functions record their arguments."""
    includes = [f"#include <diopi/{header}>\n" for header in headers.names()]
    functions = [recording_function(prototypes()[name]) for name in OPERATORS]
    source = "".join([*includes, f'#include "{RECORDER}"\n', *functions])
    return library(tmp_path_factory.mktemp("recording"), source, "-O0")


@pytest.fixture(scope="module")
def recorded_arguments(recording_library: Path) -> Callable[[], dict[str, Any]]:
    """Return a function that returns what the library recorded of the last call."""
    function = ctypes.CDLL(str(recording_library)).recorded_arguments
    function.restype = ctypes.c_char_p
    return lambda: json.loads(function())


@pytest.mark.parametrize("omit_optional", [False, True], ids=["all arguments", "without optional arguments"])
def test_arguments_arrive_in_c_and_results_in_python(
    recording_library: Path,
    recorded_arguments: Callable[[], dict[str, Any]],
    context: Context,
    omit_optional: bool,
) -> None:
    vendor, values = NativeVendor(recording_library), ArgumentValues(context)
    for name in OPERATORS:
        prototype = lookup(name)
        arguments = values.for_call(prototype, omit_optional=omit_optional)
        expected = expected_record(prototype, arguments)
        assert vendor.call(name, context, *arguments) is Error.Success, vendor.last_error()
        assert recorded_arguments() == expected, name
        check_results(context, prototype, arguments)
    for generator in values.generators:
        generator.close()


@pytest.fixture(scope="module")
def exported_vendor(tmp_path_factory: pytest.TempPathFactory) -> NativeVendor:
    """Return the Python vendor that records its arguments, exported as a library."""
    return NativeVendor(export("recorder:vendor", tmp_path_factory.mktemp("recorder")))


@pytest.mark.parametrize("omit_optional", [False, True], ids=["all arguments", "without optional arguments"])
def test_arguments_arrive_in_python_and_results_in_c(exported_vendor: NativeVendor, omit_optional: bool) -> None:
    with exported_vendor.open_device() as device, Context(device) as context:
        values = ArgumentValues(context)
        for name in OPERATORS:
            prototype = lookup(name)
            sent = values.for_call(prototype, omit_optional=omit_optional)
            assert exported_vendor.call(name, context, *sent) is Error.Success, exported_vendor.last_error()
            called, received = recorder.vendor.calls.pop()
            assert called == name
            assert [make_comparable(value) for value in received] == [make_comparable(value) for value in sent], name
            check_results(context, prototype, sent)
        for generator in values.generators:
            generator.close()


def make_comparable(value: Any) -> Any:
    """Return a value that is equal for equal arguments, including the address and layout of a tensor."""
    if isinstance(value, Tensor):
        return address(value.handle), value.shape, value.strides, value.dtype
    if isinstance(value, Generator):
        return address(value.handle), value.seed, value.offset
    if isinstance(value, list):
        return [make_comparable(entry) for entry in value]
    return Box if isinstance(value, Box) else (type(value), value)
