"""Every parameter of every function arrives as it was sent: from Python in C, and from C in Python."""

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import recorder
from samples import COUNT, OPERATORS, Samples
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

SMOKE_SELECTION = """
static char told[1 << 16];
static int length;
const char* what_was_told(void) { return told; }

#define TELL(...) (length += snprintf(told + length, sizeof told - length, __VA_ARGS__))

static void tell_number(long long value) { TELL("%lld ", value); }
static void tell_real(double value) { TELL("%.17g ", value); }
static void tell_handle(const void* value) { TELL("%llx ", (unsigned long long)(uintptr_t)value); }
static void tell_handles(const void* values, int64_t count) {
    if (values == NULL) { tell_handle(NULL); return; }
    for (int64_t i = 0; i < count; i++) tell_handle(((const void* const*)values)[i]);
}
static void tell_size(diopiSize_t value) {
    TELL("[");
    for (int64_t i = 0; i < value.len; i++) tell_number(value.data[i]);
    TELL("] ");
}
static void tell_scalar(const diopiScalar_t* value) {
    if (value == NULL) { tell_handle(NULL); return; }
    tell_number(value->stype);
    if (value->stype <= diopi_dtype_uint64 || value->stype == diopi_dtype_bool) tell_number(value->ival);
    else tell_real(value->fval);
}
static void tell_text(const char* value) { if (value != NULL) TELL("'%s' ", value); else tell_handle(NULL); }
static void make_result(diopiContextHandle_t ctx, diopiTensorHandle_t* result, int64_t elements) {
    diopiSize_t shape = {&elements, 1};
    if (result != NULL) diopiRequireTensor(ctx, result, &shape, NULL, diopi_dtype_float32, diopi_device);
}
"""

BY_TYPE = {
    "diopiTensorHandle_t": "tell_handle({0});",
    "diopiConstTensorHandle_t": "tell_handle({0});",
    "diopiGeneratorHandle_t": "tell_handle({0});",
    "void*": "tell_handle({0});",
    "diopiTensorHandle_t*": f"tell_handles({{0}}, {COUNT});",
    "diopiConstTensorHandle_t*": f"tell_handles({{0}}, {COUNT});",
    "diopiGeneratorHandle_t*": f"tell_handles({{0}}, {COUNT});",
    "double": "tell_real({0});",
    "float": "tell_real({0});",
    "int64_t*": "if ({0} != NULL) tell_number(*{0}); else tell_handle(NULL);",
    "double*": "if ({0} != NULL) tell_real(*{0}); else tell_handle(NULL);",
    "bool*": "if ({0} != NULL) tell_number(*{0}); else tell_handle(NULL);",
    "diopiSize_t": "tell_size({0});",
    "diopiSize_t*": "if ({0} != NULL) tell_size(*{0}); else tell_handle(NULL);",
    "diopiScalar_t*": "tell_scalar({0});",
    "char*": "tell_text({0});",
}
"""What tells the value of a parameter of each C type, `const` left out; numbers and enums are told as numbers."""

MADE = {
    kinds.NewOut: "make_result(ctx, {0}, {1} + 1);",
    kinds.OutF64: "*{0} = {1} + 0.1;",
    kinds.OutI64: "*{0} = -(1LL << 50) - {1};",
    kinds.OutBool: "*{0} = {1} % 2 == 1;",
    kinds.InOutSize: "tell_number(*{0}); *{0} = -(1LL << 50) - {1};",
}


def statement(prototype: Prototype, parameter: Parameter, number: int) -> str:
    """C that tells the parameter's value, or makes what the callee makes."""
    name = parameter.c_name
    if parameter.annotation is kinds.NewOuts:
        return " ".join(f"make_result(ctx, &{name}[{i}], {number} + {i} + 1);" for i in range(len(prototype.result)))
    bare = parameter.c_type.removeprefix("const ")
    return MADE.get(parameter.annotation, BY_TYPE.get(bare, "tell_number({0});")).format(name, number)


def telling(prototype: Prototype) -> str:
    """A C function that tells what it is called with."""
    told = [statement(prototype, p, number) for number, p in enumerate(prototype.parameters[1:])]
    body = "\n    ".join(["told[length = 0] = 0;", f"(void){prototype.parameters[0].c_name};", *told])
    return f"{headers.declaration(prototype)} {{\n    {body}\n    return diopiSuccess;\n}}\n"


def said(prototype: Prototype, values: list[Any]) -> str:
    """What the C function should tell."""
    pairs = zip(prototype.parameters[1:], values, strict=True)
    return "".join(told for parameter, value in pairs for told in _said(parameter, value))


def _said(parameter: Parameter, value: Any) -> Iterator[str]:
    if parameter.annotation is kinds.InOutSize:
        yield f"{value.value} "
    elif isinstance(value, Box) or parameter.annotation in MADE or parameter.annotation is kinds.NewOuts:
        return
    elif value is None:
        yield "0 "
    elif isinstance(value, Tensor | Generator):
        yield f"{address(value.handle):x} "
    elif isinstance(value, list):
        yield from (one for entry in value for one in _said(parameter, entry))
    elif isinstance(value, tuple):
        yield "[" + "".join(f"{entry} " for entry in value) + "] "
    elif isinstance(value, Scalar):
        yield f"{int(value.dtype)} {value.value if value.is_integer else format(value.value, '.17g')} "
    elif isinstance(value, str):
        yield f"'{value}' "
    elif isinstance(value, float):
        yield f"{value:.17g} "
    else:
        yield f"{int(value):x} " if parameter.annotation is kinds.Pointer else f"{int(value)} "


def boxes(values: list[Any]) -> list[tuple[int, Box]]:
    """The boxes among the values, with the numbers that `recorder.made` goes by."""
    lists = [(n, value if isinstance(value, list) else [value]) for n, value in enumerate(values)]
    return [(n + i, entry) for n, entries in lists for i, entry in enumerate(entries) if isinstance(entry, Box)]


def check_made(context: Context, prototype: Prototype, values: list[Any]) -> None:
    """What the callee made is what `recorder.made` makes for the same place."""
    kind = {n: p.annotation for n, p in enumerate(prototype.parameters[1:])}
    for number, box in boxes(values):
        if isinstance(box.value, Tensor):
            assert box.value.shape == (number + 1,)
            assert box.value.context is context
        else:
            assert box.value == recorder.made(context, kind[number], number)
            assert type(box.value) is type(recorder.made(context, kind[number], number))


@pytest.fixture(scope="module")
def context() -> Iterator[Context]:
    with Device(HostRuntime().functions(), host_addressable=True) as device, Context(device) as made:
        yield made


@pytest.fixture(scope="module")
def samples(context: Context) -> Samples:
    return Samples(context)


@pytest.fixture(scope="module")
def teller(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of all functions, each of which tells what it is called with."""
    includes = [f"#include <diopi/{header}>\n" for header in headers.names()]
    functions = [telling(prototypes()[name]) for name in OPERATORS]
    source = "".join(["#include <stdio.h>\n", *includes, SMOKE_SELECTION, *functions])
    return library(tmp_path_factory.mktemp("teller"), source, "-O0")


@pytest.mark.parametrize("absent", [False, True], ids=["given", "left out"])
def test_every_value_arrives_in_c(teller: Path, context: Context, samples: Samples, absent: bool) -> None:
    vendor = NativeVendor(teller)
    told = ctypes.CDLL(str(teller)).what_was_told
    told.restype = ctypes.c_char_p
    for name in OPERATORS:
        prototype = prototypes()[name]
        values = samples.values(prototype, absent=absent)
        expected = said(prototype, values)
        assert vendor.call(name, context, *values) is Error.Success, vendor.last_error()
        assert told().decode() == expected, name
        check_made(context, prototype, values)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> NativeVendor:
    """The recorder, exported as a library."""
    return NativeVendor(export("recorder:vendor", tmp_path_factory.mktemp("recorder")))


@pytest.mark.parametrize("absent", [False, True], ids=["given", "left out"])
def test_every_value_arrives_in_python(recording: NativeVendor, samples: Samples, absent: bool) -> None:
    with recording.open_device() as device, Context(device) as context:
        samples = Samples(context)
        for name in OPERATORS:
            prototype = lookup(name)
            sent = samples.values(prototype, absent=absent)
            assert recording.call(name, context, *sent) is Error.Success, recording.last_error()
            called, received = recorder.vendor.calls.pop()
            assert called == name
            assert [comparable(value) for value in received] == [comparable(value) for value in sent], name
            check_made(context, prototype, sent)
        for generator in samples.generators:
            generator.close()


def comparable(value: Any) -> Any:
    """A value such that equal ones are the same argument."""
    if isinstance(value, Tensor):
        return address(value.handle), value.shape, value.strides, value.dtype
    if isinstance(value, Generator):
        return address(value.handle), value.seed, value.offset
    if isinstance(value, list):
        return [comparable(entry) for entry in value]
    return Box if isinstance(value, Box) else (type(value), value)
