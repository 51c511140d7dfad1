"""Cases of the calls that combine the elements of several ranks, such as diclAllReduce.

They vary element types, operations, sizes and roots. Calls in place write the result to their input. A bench
(`CollectivesBench`) is the access of a rank, which is one of the processes, to the collectives and to the other ranks.

Every rank calls each case at the same time. The name of a case states what must be true.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np

from diopi_proto.collectives import ELEMENT_TYPES, OPERATIONS
from diopi_proto.types import Dtype
from diopi_test.collectives.bench import (
    CASES,
    LARGE_CASES,
    CollectivesBench,
    DeviceBuffer,
    check_elements,
    collective_case,
    type_code,
)
from diopi_test.collectives.combination import (
    TYPE_BY_DTYPE,
    Elements,
    combine_integers,
    combine_reals,
    compare_reals,
    draw_elements,
    is_inexact,
    is_required,
    operations_of,
)
from diopi_test.device_runtime.bench import (
    GUARD,
    RuntimeViolationError,
    UnsupportedCaseError,
    check,
    check_bytes,
    check_that,
)
from lib_rt.device_runtime_client import RuntimeCallError
from lib_rt.dtypes import to_numpy

SIZES = (0, 1, 2, 7, 1021)
"""The numbers of elements in cases of all element types and operations."""

MEDIUM_SIZES = (4096, 65537, (1 << 20) + 3)
"""The numbers of elements in the cases of larger sizes."""

LARGE_SIZE = 1 << 24
"""The number of elements of the largest cases."""

COMBINING_FUNCTIONS = ("diclAllReduce", "diclReduce", "diclReduceScatter")
"""The functions that combine elements."""

CHUNK_ELEMENTS = 1 << 20
"""The number of elements whose expected results are computed at a time, which limits the memory."""


@final
@dataclass(frozen=True, kw_only=True)
class Combination:
    """A call that combines elements.

    Attributes:
        function: the name of the function.
        dtype: the element type.
        operation: the operation.
        size: the number of elements per rank in the result.
        root: the rank that receives the result of diclReduce.
        in_place: whether the buffer of the result is the input, or a part of it.
    """

    function: str
    dtype: Dtype
    operation: str
    size: int
    root: int = 0
    in_place: bool = False

    @property
    def subject(self) -> str:
        """The call in words."""
        place = " in place" if self.in_place else ""
        root = f" to root {self.root}" if self.function == "diclReduce" else ""
        return f"{self.function} of {self.size:,} {self.dtype.name} with {self.operation}{root}{place}"

    def input_size(self, ranks: int) -> int:
        """Return the number of elements that each rank sends."""
        return self.size * ranks if self.function == "diclReduceScatter" else self.size

    def receives(self, rank: int) -> bool:
        """Return whether a rank receives a result."""
        return self.function != "diclReduce" or rank == self.root


def _check_result(subject: str, inputs: list[Elements], combination: Combination, actual: Elements) -> None:
    """Raise RuntimeViolationError unless the result of an operation is correct.

    Args:
        subject: what is checked, for the message.
        inputs: the elements of each rank that are combined, vectors of the size of `actual`.
        combination: the call.
        actual: the result that this rank received.
    """
    for start in range(0, actual.size, CHUNK_ELEMENTS):
        part = slice(start, start + CHUNK_ELEMENTS)
        values = [elements[part] for elements in inputs]
        if is_inexact(combination.dtype):
            expected, limits = combine_reals(values, combination.operation, combination.dtype)
            message = compare_reals(actual[part], expected, limits)
            check_that(not message, f"{subject} from element {start:,}: {message}")
        else:
            check_elements(subject, actual[part], combine_integers(values, combination.operation))


def check_combination(bench: CollectivesBench, combination: Combination, comm: int, stream: int) -> None:
    """Make this rank's part of a call, and check its result, the bytes around the result, and its input.

    Args:
        bench: the collectives of this rank.
        combination: the call, the same on all ranks.
        comm: a communicator of all ranks.
        stream: the stream of the call.

    Raises:
        RuntimeViolationError: if one of the checks fails.
    """
    size = combination.input_size(bench.ranks)
    inputs = [draw_elements(combination.dtype, size, rank, combination.operation) for rank in range(bench.ranks)]
    elements = inputs[bench.rank]
    start = bench.rank * combination.size if combination.function == "diclReduceScatter" else 0
    part = slice(start, start + combination.size)
    with (
        bench.buffer(combination.dtype, size, elements) as send,
        bench.buffer(combination.dtype, combination.size) as separate,
    ):
        target = send.element(start) if combination.in_place else separate.address
        _call(bench, combination, send, target, comm, stream)
        bench.synchronize(comm, stream)
        sent, received = send.load(f"{combination.subject}: send"), separate.load(combination.subject)
    actual = sent[part] if combination.in_place else received
    if combination.receives(bench.rank):
        _check_result(combination.subject, [elements[part] for elements in inputs], combination, actual)
        if combination.in_place:
            sent, elements = np.delete(sent, np.s_[part]), np.delete(elements, np.s_[part])
    else:
        check_bytes(f"{combination.subject}: the buffer of another rank", received.view(np.uint8), GUARD)
    check_elements(f"{combination.subject}: the elements that are sent", sent, elements)


def _call(
    bench: CollectivesBench, combination: Combination, send: DeviceBuffer, target: int, comm: int, stream: int
) -> None:
    """Call the function of a combination with the buffer `send` as input and the address `target` for the result."""
    roots = [combination.root] if combination.function == "diclReduce" else []
    bench.call(
        combination.function,
        send.address,
        target,
        combination.size,
        type_code(combination.dtype),
        OPERATIONS.index(combination.operation),
        *roots,
        comm,
        stream,
    )


def _variants(function: str, dtype: Dtype, operation: str, ranks: int) -> Iterator[Combination]:
    """Yield a call in place and a call out of place for each of `SIZES`. The roots rotate through the ranks."""
    for number, size in enumerate(SIZES):
        for in_place in (False, True):
            yield Combination(
                function=function,
                dtype=dtype,
                operation=operation,
                size=size,
                root=(number + in_place) % ranks,
                in_place=in_place,
            )


def _check_operation(bench: CollectivesBench, function: str, dtype: Dtype, operation: str) -> None:
    """Check an operation on an element type; raise UnsupportedCaseError if the vendor rejects it and may do so."""
    with bench.runtime.stream() as stream:
        for combination in _variants(function, dtype, operation, bench.ranks):
            try:
                check_combination(bench, combination, bench.world, stream)
            except RuntimeCallError as error:
                if error.function != function or is_required(TYPE_BY_DTYPE[dtype], operation):
                    raise
                raise UnsupportedCaseError(f"{function} rejects {operation} of {dtype.name}") from error


for _function in COMBINING_FUNCTIONS:
    for _type in ELEMENT_TYPES:
        for _operation in operations_of(_type.dtype):
            CASES[f"{_function}_combines[{_type.dtype.name}-{_operation}]"] = partial(
                _check_operation, function=_function, dtype=_type.dtype, operation=_operation
            )


def _check_sizes(bench: CollectivesBench, function: str, sizes: tuple[int, ...]) -> None:
    """Check sums of float32 with several sizes; diclReduceScatter divides each size among the ranks."""
    with bench.runtime.stream() as stream:
        for size in sizes:
            divisor = bench.ranks if function == "diclReduceScatter" else 1
            combination = Combination(
                function=function, dtype=Dtype.float32, operation="SUM", size=size // divisor, root=bench.ranks - 1
            )
            check_combination(bench, combination, bench.world, stream)


for _function in COMBINING_FUNCTIONS:
    CASES[f"{_function}_combines_many_elements"] = partial(_check_sizes, function=_function, sizes=MEDIUM_SIZES)
    CASES[f"{_function}_combines_2_to_the_24_elements"] = partial(_check_sizes, function=_function, sizes=(LARGE_SIZE,))
    LARGE_CASES.add(f"{_function}_combines_2_to_the_24_elements")


def _all_reduce(bench: CollectivesBench, elements: Elements, dtype: Dtype, operation: str = "SUM") -> Elements:
    """Call diclAllReduce in place with the elements of this rank, and return the result.

    Args:
        bench: the collectives of this rank.
        elements: the elements, a vector.
        dtype: their element type.
        operation: the operation.

    Returns:
        A vector of the same size.
    """
    with bench.runtime.stream() as stream, bench.buffer(dtype, elements.size, elements) as buffer:
        arguments = elements.size, type_code(dtype), OPERATIONS.index(operation), bench.world, stream
        bench.call("diclAllReduce", buffer.address, buffer.address, *arguments)
        bench.synchronize(bench.world, stream)
        return buffer.load("diclAllReduce")


BFLOAT16_INTEGERS = 256
"""The number up to which bfloat16 represents all integers."""

COMBINED_FLOATING_DTYPES = (Dtype.float16, Dtype.bfloat16, Dtype.float32, Dtype.float64)
"""The floating-point types that every vendor combines."""


@collective_case
def sums_of_small_integers_in_floating_point_are_exact(bench: CollectivesBench) -> None:
    bound = BFLOAT16_INTEGERS // bench.ranks
    numbers = [np.arange(301) * (rank + 3) % (2 * bound + 1) - bound for rank in range(bench.ranks)]
    for dtype in COMBINED_FLOATING_DTYPES:
        inputs = [integers.astype(to_numpy(dtype)) for integers in numbers]
        expected = np.sum([elements.astype(np.float64) for elements in inputs], 0).astype(to_numpy(dtype))
        actual = _all_reduce(bench, inputs[bench.rank], dtype)
        check_elements(f"the sum of small integers in {dtype.name}", actual + to_numpy(dtype).type(0), expected)


@collective_case
def infinities_and_nan_spread_in_sums(bench: CollectivesBench) -> None:
    bench.require_ranks(2)
    for dtype in COMBINED_FLOATING_DTYPES:
        elements = np.ones(4, np.float64)
        if bench.rank == bench.ranks - 1:
            elements[:3] = np.inf, -np.inf, np.nan
        if bench.rank == 0:
            elements[0] = -np.inf
        actual = _all_reduce(bench, elements.astype(to_numpy(dtype)), dtype).astype(np.float64)
        check(f"{dtype.name}: whether ∞ - ∞ and the sum of NaN are NaN", (*np.isnan(actual[[0, 2]]),), (True, True))
        check(f"{dtype.name}: sums of -∞ and of ones", (*actual[[1, 3]],), (-np.inf, float(bench.ranks)))


@collective_case
def subnormal_numbers_are_moved_and_compared_exactly(bench: CollectivesBench) -> None:
    for dtype in COMBINED_FLOATING_DTYPES:
        bits = np.dtype(f"u{to_numpy(dtype).itemsize}")
        elements = (np.arange(1, 65) * 2 + bench.rank).astype(bits).view(to_numpy(dtype))
        actual = _all_reduce(bench, elements, dtype, "MAX")
        expected = (np.arange(1, 65) * 2 + bench.ranks - 1).astype(bits).view(to_numpy(dtype))
        is_flushed_to_zero = (actual.astype(np.float64) == 0).all()
        if not is_flushed_to_zero:
            check_elements(f"the maxima of subnormal {dtype.name}", actual, expected)


@collective_case
def all_ranks_receive_the_same_bits(bench: CollectivesBench) -> None:
    for dtype in COMBINED_FLOATING_DTYPES:
        actual = _all_reduce(bench, draw_elements(dtype, 4099, bench.rank), dtype)
        digests = bench.exchange(actual.tobytes().hex())
        check(f"whether all ranks have the same sums of {dtype.name}", len(set(digests)), 1)


@collective_case
def repeated_calls_see_new_elements(bench: CollectivesBench) -> None:
    with bench.runtime.stream() as stream, bench.buffer(Dtype.int32, 33) as buffer:
        for turn in range(50):
            buffer.store(np.full(33, turn + bench.rank, np.int32))
            arguments = 33, type_code(Dtype.int32), OPERATIONS.index("SUM"), bench.world, stream
            bench.call("diclAllReduce", buffer.address, buffer.address, *arguments)
            bench.synchronize(bench.world, stream)
            total = turn * bench.ranks + bench.ranks * (bench.ranks - 1) // 2
            check_elements(f"the sum of turn {turn}", buffer.load("diclAllReduce"), np.full(33, total, np.int32))


@collective_case
def unknown_operations_and_roots_are_rejected(bench: CollectivesBench) -> None:
    with bench.runtime.stream() as stream, bench.buffer(Dtype.float32, 4) as buffer:
        unused = OPERATIONS.index("UNUSED")
        arguments = buffer.address, buffer.address, 4, type_code(Dtype.float32)
        _expect_error("UNUSED", bench, "diclAllReduce", *arguments, unused, bench.world, stream)
        _expect_error("BAND of float32", bench, "diclAllReduce", *arguments, 5, bench.world, stream)
        for root in (-1, bench.ranks):
            _expect_error(f"root {root}", bench, "diclReduce", *arguments, 0, root, bench.world, stream)
            _expect_error(f"root {root}", bench, "diclBroadcast", *arguments, root, bench.world, stream)
        bench.synchronize(bench.world, stream)
        check_elements("the buffer", buffer.load("buffer").view(np.uint8), np.full(16, 0xA5, np.uint8))


def _expect_error(subject: str, bench: CollectivesBench, name: str, *arguments: int) -> None:
    """Call the function `name`, which must fail.

    Args:
        subject: What the function must reject, for the message.
        bench: The bench that makes the call.
        name: The name of the function.
        *arguments: The arguments of the call.

    Raises:
        RuntimeViolationError: the call succeeds
    """
    try:
        bench.call(name, *arguments)
    except RuntimeCallError:
        return
    raise RuntimeViolationError(f"{name} accepts {subject}, expected an error")
