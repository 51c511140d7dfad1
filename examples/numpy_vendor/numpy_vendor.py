"""An example vendor: a device in host memory, and a few operators in NumPy. Copy it as a starting point.

It has the three parts of every vendor: the runtime (memory, streams, copies), the vendor itself, and the operators that
are registered with it. `diopi-test run` checks which operators conform to the standard. Operators that are not
registered count as not implemented, so a vendor can start with one operator.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np

from diopi_impl import Vendor
from lib_rt import RuntimeFunctions

Array = np.ndarray[Any, Any]


# 1. The runtime: nine functions. Addresses and streams, which are void* in C, are integers.
#
# A function that returns None has succeeded. To report a failure, return a number other than 0, or raise an exception;
# its text becomes the last error. Several threads may call the functions at the same time.


class HostDevice:
    """A device whose memory consists of NumPy arrays, and whose streams execute work at once."""

    def __init__(self) -> None:
        self._memory: dict[int, Array] = {}
        self._numbers = itertools.count(1)

    def malloc(self, nbytes: int) -> int:
        """Allocate memory and return its address, a multiple of 16.

        If memory runs out, return 0 or raise MemoryError.
        """
        block = np.empty(nbytes, np.uint8)
        address = int(block.ctypes.data)
        self._memory[address] = block  # NumPy frees the memory when there is no reference to the block
        return address

    def free(self, address: int) -> None:
        """Release memory that `malloc` returned."""
        del self._memory[address]

    def stream_create(self) -> int:
        """Return the handle of a new queue of work. A stream executes its work in order; streams are independent."""
        return next(self._numbers)

    def stream_destroy(self, stream: int) -> None:
        """Destroy a stream; all work on the stream is done before this call."""

    def stream_sync(self, stream: int) -> None:
        """Wait until all work on the stream is done, which is always the case here."""

    def copy(self, stream: int, destination: int, source: int, nbytes: int) -> None:
        """Enqueue a copy; a device may return before the copy is done. There is one function per direction."""
        ctypes.memmove(destination, source, nbytes)

    def last_error(self) -> str:
        """Return why the latest call of this thread failed.

        Messages of exceptions are reported without this function.
        """
        return ""

    def functions(self) -> RuntimeFunctions:
        """Return the nine functions for registration.

        A call of a missing function fails with an error of the standard.
        """
        return RuntimeFunctions(
            stream_create=self.stream_create,
            stream_destroy=self.stream_destroy,
            stream_sync=self.stream_sync,
            malloc=self.malloc,
            free=self.free,
            h2d=self.copy,
            d2h=self.copy,
            d2d=self.copy,
            last_error=self.last_error,
        )


# 2. The vendor. With `host_addressable=True`, inputs would be views of device memory instead of copies.

vendor = Vendor("numpy_vendor", "0.1.0", HostDevice().functions())


# 3. Operators. The usual kind is functional: it declares those of the prototype's inputs and attributes that it uses,
# by name and in any order. It receives arrays, plain numbers and tuples, or None for an argument that the caller omits,
# and returns the results. The vendor reads the tensors, converts operands of several element types to their common
# type, and converts and writes the results. It also derives the in-place form and the form with a number in place of a
# tensor. A parameter that the prototype lacks is an error at registration.
#
# To reject a call, raise an exception; nothing is written then. `NotImplementedError` means that the vendor does not
# implement the call, `diopi_impl.UnsupportedDtypeError` that the operator does not support these element types, and any
# other exception is an error.


def floating(input: Array) -> Array:
    """Return integers and bool as float32, the type in which the standard computes them, and other types unchanged."""
    return input.astype(np.float32) if input.dtype.kind in "iub" else input


@vendor.implements("diopiSqrt")  # registers diopiSqrtInp, too
def sqrt(input):
    """Return the square root of each element."""
    return np.sqrt(floating(input))


@vendor.implements("diopiExp")
def exp(input):
    """Return e to the power of each element."""
    return np.exp(floating(input))


@vendor.implements("diopiReciprocal")
def reciprocal(input):
    """Return 1 divided by each element."""
    return 1 / floating(input)


@vendor.implements("diopiMul")  # and diopiMulInp, diopiMulScalar and diopiMulInpScalar, where `other` is a number
def mul(input, other):
    """Return the product with a tensor or a number, with the type promotion of NumPy arrays."""
    return input * np.asarray(other)  # without asarray, NumPy rejects numbers that the type of `input` can't represent


@vendor.implements("diopiTanhBackward")
def tanh_backward(grad_output, output):
    """Return the gradient of tanh, from the gradient of the result and the result."""
    return grad_output * (1 - output * output)


@vendor.implements("diopiSoftmax")
def softmax(input, dim):
    """Return exp(input), divided by the sum along `dim`."""
    wide = input.astype(np.float64)  # sums in half precision would be too inaccurate
    powers = np.exp(wide - wide.max(dim, keepdims=True, initial=-np.inf))
    return powers / powers.sum(dim, keepdims=True)


# The other kind is raw: it may declare all parameters of the prototype, and tensors are `lib_rt.Tensor`. It launches
# kernels itself, on `ctx.stream.native` with addresses (`input.data_ptr`), shapes and strides. It may return an error
# code.


@vendor.implements_raw("diopiIsNan")
def is_nan(out, input):
    """Write to `out` whether each element is NaN."""
    out.write(np.isnan(input.numpy()))  # `numpy` waits for the stream; `write` does not have to
