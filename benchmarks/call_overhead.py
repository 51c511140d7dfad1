"""Measure the overhead of a call: an add of two tensors of 16 elements, by every way in which a vendor can be called.

    python benchmarks/call_overhead.py [--calls N]

The column `call` is the time of the call itself, with an existing context and tensors. For `with tensors`, each call
also creates and releases the context and the tensors and checks their guards, as the suite does. The figures are in
microseconds, the best of four hundred short rounds, because other processes do not disturb every short round.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from short_rounds import microseconds

from diopi_impl import BaseVendor, find_vendor
from diopi_impl.export import export
from diopi_proto import headers
from diopi_proto.types import Dtype, Error, Scalar
from lib_rt import Context, Device, Tensor

ELEMENTS = 16
"""The number of elements of the tensors."""

JAX = "diopi_impl.jax_cpu:vendor"
"""The vendor in Python, which is also measured as an exported library."""

VALUES = np.arange(ELEMENTS, dtype=np.float32)
"""The elements of both operands."""

UNIT_SCALE = Scalar.from_number(1)
"""The argument `alpha` of diopiAdd."""

# The vendor in C, which only adds
C_VENDOR = """
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

int32_t initLibrary(void) {
    diopiRegisterStreamCreateFunc(create);
    diopiRegisterStreamDestroyFunc(destroy);
    diopiRegisterSynchronizeStreamFunc(synchronize);
    diopiRegisterDeviceMallocFunc(allocate);
    diopiRegisterDevMemFreeFunc(free);
    diopiRegisterMemcpyH2DAsyncFunc(copy);
    diopiRegisterMemcpyD2HAsyncFunc(copy);
    diopiRegisterMemcpyD2DAsyncFunc(copy);
    return 0;
}

diopiError_t diopiAdd(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      diopiConstTensorHandle_t other, const diopiScalar_t* alpha) {
    void* result;
    const void *one, *two;
    int64_t numel;
    (void)ctx;
    diopiGetTensorData(out, &result);
    diopiGetTensorDataConst(input, &one);
    diopiGetTensorDataConst(other, &two);
    diopiGetTensorNumel(out, &numel);
    for (int64_t i = 0; i < numel; i++) {
        ((float*)result)[i] = ((const float*)one)[i] + (float)alpha->ival * ((const float*)two)[i];
    }
    return diopiSuccess;
}
"""


def tensors(context: Context) -> list[Tensor]:
    """Return the tensors of the result and the two operands."""
    return [Tensor.empty(context, (ELEMENTS,), Dtype.float32), *(Tensor.from_numpy(context, VALUES) for _ in range(2))]


def add(vendor: BaseVendor, context: Context, arguments: list[Tensor]) -> None:
    """Call `diopiAdd` once."""
    assert vendor.call("diopiAdd", context, *arguments, UNIT_SCALE) is Error.Success


def add_and_clean_up(vendor: BaseVendor, device: Device) -> None:
    """Call `diopiAdd` once with a new context and new tensors, and release them."""
    with Context(device) as context:
        results = tensors(context)
        add(vendor, context, results)
        for tensor in results:
            tensor.close()


def measure(vendor: BaseVendor, calls: int) -> tuple[float, float]:
    """Return the microseconds of the call itself, and of the call with its context and tensors."""
    with vendor.open_device() as device, Context(device) as context:
        arguments = tensors(context)
        add(vendor, context, arguments)
        assert np.array_equal(arguments[0].numpy(), 2 * VALUES)
        call_only = microseconds(lambda: add(vendor, context, arguments), calls)
        return call_only, microseconds(lambda: add_and_clean_up(vendor, device), calls // 4)


def measure_jax(calls: int) -> float:
    """Return the microseconds of the same sum by a compiled JAX function, from NumPy arrays to a NumPy array."""
    import jax

    compiled = jax.jit(lambda first, second: first + second)
    return microseconds(lambda: np.asarray(compiled(VALUES, VALUES)), calls)


def build(source: str, folder: Path) -> Path:
    """Compile a vendor in C and return the path of the library."""
    file, library = folder / "vendor.c", folder / "libdiopi_impl.so"
    file.write_text(source)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", f"-I{headers.INCLUDE_DIR}", file, "-o", library], check=True)
    return library


def table(calls: int) -> Table:
    """Return a table of the times, with one row per way to call."""
    results = Table("µs", "call", "with tensors", title=f"an add of {ELEMENTS} elements")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vendors = {
            "the JAX vendor in Python": find_vendor(JAX),
            "a vendor in C": find_vendor(str(build(C_VENDOR, folder))),
            "the JAX vendor as a library": find_vendor(str(export(JAX, folder / "exported"))),
        }
        results.add_row("JAX without DIOPI", f"{measure_jax(calls):.1f}", "")
        for label, vendor in vendors.items():
            results.add_row(label, *(f"{time:.1f}" for time in measure(vendor, calls)))
    return results


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=20, help="calls per round")
    Console().print(table(parser.parse_args().calls))


if __name__ == "__main__":
    main()
