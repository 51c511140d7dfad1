"""A vendor's CMake project finds the headers and the runtime, and its library registers with the one that is loaded."""

import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import cffi
import numpy as np
import pytest

from diopi_proto import headers
from diopi_proto.types import Error
from lib_rt import CallError, Context, Device, Tensor

PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(vendor C)
find_package(diopi REQUIRED)
add_library(vendor SHARED vendor.c)
target_compile_options(vendor PRIVATE -Wall -Wextra -pedantic -Werror)
target_link_libraries(vendor PRIVATE diopi::rt)
"""

VENDOR = """
#include <diopi/diopi_register.h>
#include <diopi/functions.h>
#include <stdlib.h>
#include <string.h>

static int32_t create(diopiStreamHandle_t* stream) { *stream = malloc(1); return 0; }
static int32_t destroy(diopiStreamHandle_t stream) { free(stream); return 0; }
static int32_t synchronize(diopiStreamHandle_t stream) { (void)stream; return 0; }
static void* allocate(uint64_t bytes) { return malloc(bytes); }
static int32_t copy(diopiStreamHandle_t stream, void* dst, const void* src, uint64_t bytes) {
    (void)stream;
    memcpy(dst, src, bytes);
    return 0;
}
static const char* last_error(void) { return "none so far"; }

int32_t initLibrary(void) {
    diopiRegisterStreamCreateFunc(create);
    diopiRegisterStreamDestroyFunc(destroy);
    diopiRegisterSynchronizeStreamFunc(synchronize);
    diopiRegisterDeviceMallocFunc(allocate);
    diopiRegisterDevMemFreeFunc(free);
    diopiRegisterMemcpyH2DAsyncFunc(copy);
    diopiRegisterMemcpyD2HAsyncFunc(copy);
    diopiRegisterGetLastErrorFunc(last_error);
    return 0;
}

/* A callee that makes its result: the elements above zero. */
diopiError_t diopiNonzero(diopiContextHandle_t ctx, diopiTensorHandle_t* out, diopiConstTensorHandle_t input) {
    const void* values;
    void* made;
    int64_t count = 0, numel;
    diopiGetTensorNumel(input, &numel);
    diopiGetTensorDataConst(input, &values);
    for (int64_t i = 0; i < numel; i++) count += ((const float*)values)[i] != 0;
    int64_t shape[] = {count, 1};
    diopiSize_t size = {shape, 2};
    diopiError_t code = diopiRequireTensor(ctx, out, &size, NULL, diopi_dtype_int64, diopi_device);
    if (code != diopiSuccess) return code;
    diopiGetTensorData(*out, &made);
    for (int64_t i = 0, j = 0; i < numel; i++) {
        if (((const float*)values)[i] != 0) ((int64_t*)made)[j++] = i;
    }
    return diopiSuccess;
}
"""


def run(*command: object) -> None:
    """Run a command, which must succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def vendor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the vendor's CMake project and return the library."""
    for tool in ("cmake", "cc"):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool} here")
    source = tmp_path_factory.mktemp("vendor")
    source.joinpath("CMakeLists.txt").write_text(PROJECT)
    source.joinpath("vendor.c").write_text(VENDOR)
    run("cmake", "-S", source, "-B", source / "build", f"-Ddiopi_DIR={files('diopi_proto') / 'cmake'}")
    run("cmake", "--build", source / "build")
    return source / "build" / "libvendor.so"


def test_a_compiled_vendor_registers_and_runs(vendor: Path) -> None:
    ffi = cffi.FFI()
    ffi.cdef(headers.cdef())
    loaded = ffi.dlopen(str(vendor), ffi.RTLD_NOW)
    with Device.from_initializer(loaded.initLibrary, host_addressable=True) as device, Context(device) as context:
        assert device.last_error == "none so far"
        tensor = Tensor.from_numpy(context, np.array([0, 3, 0, 0, 5], np.float32))
        result = ffi.new("diopiTensorHandle_t*")
        handles = [
            ffi.cast(f"diopi{kind}Handle_t", owner.handle)
            for kind, owner in zip(("Context", "ConstTensor"), (context, tensor), strict=True)
        ]
        assert loaded.diopiNonzero(handles[0], result, handles[1]) == 0
        built = context.required[0]
        assert built.handle == result[0]
        np.testing.assert_array_equal(built.numpy(), [[1], [4]])
        with pytest.raises(CallError) as caught:
            tensor.clone()
        assert caught.value.code is Error.NoRegisteredDevice2DdeviceMemoryCopyFunction
