"""Mutants that are wrong for some ranks, addresses and sizes: many axes, odd addresses, full vectors, short rows.

Libraries also have kernels of their own for some calls, such as convolutions with a kernel of 3 × 3. For each such
path, there is a mutant that is wrong only on this path. Predicates say whether the call of a stored case takes a path.
The "first result" and the "first tensor" of a case are the first in the order of the function's parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np

from diopi_proto.interface import lookup
from diopi_proto.prototype import Prototype
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.layouts import layout_named
from diopi_test.oracle.records import BaselineCase, BaselineTensor, Expected, expected_arrays, tensors_in
from diopi_test.quality.mutation.call_paths import call_paths
from diopi_test.quality.mutation.mutant import Effect, Mutant, SimulatedCall
from diopi_test.quality.mutation.randomness import is_random
from diopi_test.quality.mutation.results import change_last_element
from lib_rt.dtypes import to_numpy

MAX_AXES = 5
"""The largest number of axes that some kernels handle."""

VECTOR_BYTES = 16
"""The number of bytes that some kernels read or write at once, from addresses that are multiples of this number."""

VECTOR = 16
"""The number of elements that some kernels process at once; they have another path for the rest of a row."""


def geometry_mutants(function: str) -> Iterator[Mutant]:
    """Yield the mutants of a function that depend on the ranks, addresses and sizes of tensors.

    Args:
        function: the name of the function.

    Yields:
        The mutants. Those of sizes concern one tensor each; there are none for random results.
    """
    yield Mutant(name=f"last element wrong with more than {MAX_AXES} axes", corrupt=_corrupt_if(_has_many_axes))
    yield Mutant(name="last element wrong with a misaligned tensor", corrupt=_corrupt_if(_is_misaligned))
    if is_random(function):
        return
    prototype = lookup(function)
    names = [p.name for p in prototype.arguments if p.is_tensor or p.is_tensor_array]
    names += [p.name for p in prototype.results if p.name not in names]
    for name in names:
        for kind, has_size in SIZE_KINDS.items():
            corrupt = _corrupt_if(partial(_has_tensor, name, has_size))
            yield Mutant(name=f"{kind} in {name}", corrupt=corrupt, kind=kind)
    for path, is_affected in special_paths(prototype).items():
        yield Mutant(name=f"last element wrong with {path}", corrupt=_corrupt_if(is_affected), kind=SPECIAL_PATH)


def _has_complete_rows(tensor: BaselineTensor | Expected) -> bool:
    """Return whether a nonempty tensor consists of complete vectors.

    It is row-major without gaps, begins at the beginning of its storage, and its rows have a multiple of `VECTOR`
    elements.
    """
    shape = tensor.values.shape
    return bool(tensor.values.size) and bool(shape) and shape[-1] % VECTOR == 0 and _is_dense_at_start(tensor)


def _has_complete_channels(tensor: BaselineTensor | Expected) -> bool:
    """Return whether a nonempty tensor has at least three axes, and a multiple of `VECTOR` channels along axis 1."""
    shape = tensor.values.shape
    return bool(tensor.values.size) and len(shape) > 2 and shape[1] % VECTOR == 0


def _has_short_rows(tensor: BaselineTensor | Expected) -> bool:
    """Return whether a tensor has several rows of one element."""
    return len(tensor.values.shape) > 1 and tensor.values.shape[-1] == 1 and tensor.values.size > 1


SIZE_KINDS: Mapping[str, Callable[[BaselineTensor | Expected], bool]] = {
    "last element wrong with rows of a multiple of 16 elements": _has_complete_rows,
    "last element wrong with a multiple of 16 channels": _has_complete_channels,
    "last element wrong with rows of one element": _has_short_rows,
}
"""By kind of mutant, whether a tensor has the sizes for which the mutant is wrong."""


SPECIAL_PATH = "last element wrong on a special path"
"""The kind of mutants that are wrong only for calls for which libraries have kernels of their own."""

LONG_SUM = 1024
"""The number of terms above which the sums of a product are long."""

LONG_ROW = 64
"""The number of elements above which a row is long."""


def special_paths(prototype: Prototype) -> Mapping[str, Callable[[BaselineCase], bool]]:
    """Return the special paths of a function.

    Args:
        prototype: the declaration of the function.

    Returns:
        By description of the path, a predicate that tells whether the call of a case takes the path.
    """
    paths = call_paths(prototype)
    if prototype.multiplies_matrices:
        names = {parameter.name for parameter in prototype.parameters}
        is_convolution = {"weight", "stride", "dilation", "groups"} <= names
        return {**paths, **(CONVOLUTION_PATHS if is_convolution else PRODUCT_PATHS)}
    has_softmax = prototype.guarantee == "rounded" and CaseFacts.declared_for(prototype).finds_extremes
    return {**paths, **(ROW_PATHS if has_softmax else {})}


def _has_long_sums(axis: int, case: BaselineCase) -> bool:
    """Return whether the first result has one element along `axis`, and is a sum of more than `LONG_SUM` terms."""
    shape = next((entry.values.shape for value in case.expected.values() for entry in expected_arrays(value)), ())
    sizes = {size for value in case.arguments.values() for tensor in tensors_in(value) for size in tensor.values.shape}
    return len(shape) > 1 and shape[axis] == 1 and max(sizes - set(shape), default=0) > LONG_SUM


def _has_long_axis(axis: int, number: int, case: BaselineCase) -> bool:
    """Return whether the first result has more than `number` elements along `axis`."""
    shape = next((entry.values.shape for value in case.expected.values() for entry in expected_arrays(value)), ())
    return len(shape) > 1 and bool(shape[axis] > number)


def _has_very_long_sums(case: BaselineCase) -> bool:
    """Return whether the first result is a sum of more than 4,096 terms."""
    shape = next((entry.values.shape for value in case.expected.values() for entry in expected_arrays(value)), ())
    sizes = {size for value in case.arguments.values() for tensor in tensors_in(value) for size in tensor.values.shape}
    return max(sizes - set(shape), default=0) > 4_096


PRODUCT_PATHS: Mapping[str, Callable[[BaselineCase], bool]] = {
    "one row and more than 1,024 terms": partial(_has_long_sums, -2),
    "one column and more than 1,024 terms": partial(_has_long_sums, -1),
    "more than 4,096 terms": _has_very_long_sums,
    "more than 512 columns": partial(_has_long_axis, -1, 512),
    "more than 128 rows": partial(_has_long_axis, -2, 128),
}
"""The special paths of products of matrices."""


def _has_kernel(size: int, case: BaselineCase) -> bool:
    """Return whether a convolution has a kernel of `size` elements along each of its last two axes."""
    return bool(case.arguments["weight"].values.shape[-2:] == (size, size))


def _has_values(case: BaselineCase, **numbers: int) -> bool:
    """Return whether attributes of a convolution have these numbers in all entries, such as `stride=2` for (2, 2)."""
    return all(set(case.arguments[name]) == {number} for name, number in numbers.items())


def _channels(case: BaselineCase) -> tuple[int, int]:
    """Return the first two sizes of the weight of a convolution: the channels of one side, and of a group."""
    first, second = case.arguments["weight"].values.shape[:2]
    return first, second


def _has_samples(number: int, case: BaselineCase) -> bool:
    """Return whether the input, or the gradient of the result, has more than `number` samples."""
    shape = next(tensor.values.shape for value in case.arguments.values() for tensor in tensors_in(value))
    return len(shape) > 3 and bool(shape[0] > number)


CONVOLUTION_PATHS: Mapping[str, Callable[[BaselineCase], bool]] = {
    "a 3 × 3 kernel and a multiple of 16 channels": lambda case: (
        _has_kernel(3, case)
        and case.arguments["groups"] == 1
        and _has_values(case, stride=1, dilation=1)
        and all(channels and channels % VECTOR == 0 for channels in _channels(case))
    ),
    "a dilated 3 × 3 kernel per channel": lambda case: (
        _has_kernel(3, case)
        and 1 < case.arguments["groups"] == _channels(case)[0]
        and _channels(case)[1] == 1
        and max(case.arguments["dilation"]) > 1
    ),
    "a 1 × 1 kernel in groups of an even number of channels": lambda case: (
        _has_kernel(1, case)
        and case.arguments["groups"] > 1
        and _channels(case)[1] % 2 == 0
        and _has_values(case, stride=1, padding=0)
    ),
    "more than 32 samples": lambda case: _has_samples(32, case),
    "one channel of the input or the result and more than 64 of the other": lambda case: (
        min(_channels(case)) == 1 and max(_channels(case)) > 64 and case.arguments["groups"] == 1
    ),
    "a dilated kernel of one row": lambda case: (
        case.arguments["weight"].values.shape[-2] == 1
        and case.arguments["weight"].values.shape[-1] > 1
        and max(case.arguments["dilation"]) > 1
    ),
    "different strides above 2": lambda case: (
        len(set(case.arguments["stride"][-2:])) > 1 and min(case.arguments["stride"][-2:]) > 2
    ),
}
"""The special paths of convolutions."""


def _has_hidden_elements(case: BaselineCase) -> bool:
    """Return whether an argument has long rows with some −∞ and without NaN."""
    arrays = [tensor.values for value in case.arguments.values() for tensor in tensors_in(value)]
    long = [a for a in arrays if a.ndim > 0 and a.shape[-1] > LONG_ROW and a.dtype.kind not in "biuc"]
    return any(bool(np.isneginf(array).any()) and not bool(np.isnan(array).any()) for array in long)


def _has_rows(is_affected: Callable[[int], bool], case: BaselineCase) -> bool:
    """Return whether the rows of an argument have a number of elements for which `is_affected` returns True."""
    arrays = [tensor.values for value in case.arguments.values() for tensor in tensors_in(value)]
    return any(array.ndim > 0 and is_affected(array.shape[-1]) for array in arrays)


ROW_PATHS: Mapping[str, Callable[[BaselineCase], bool]] = {
    "−∞ in rows of more than 64 elements": _has_hidden_elements,
    "rows of 512 · n + 256 elements": lambda case: _has_rows(lambda size: size > 512 and size % 512 == 256, case),
}
"""The special paths of softmax and of similar functions."""


def _has_tensor(name: str, has_size: Callable[[BaselineTensor | Expected], bool], case: BaselineCase) -> bool:
    """Return whether a tensor of the argument or result `name` has the size that `has_size` describes."""
    if name in case.arguments:
        return any(map(has_size, tensors_in(case.arguments[name])))
    return any(map(has_size, expected_arrays(case.expected[name]))) if name in case.expected else False


def _corrupt_if(is_affected: Callable[[BaselineCase], bool]) -> Callable[[SimulatedCall], Effect]:
    """Return a corruption that changes the last element of the results of affected cases."""

    def corrupt(call: SimulatedCall) -> Effect:
        """Change the last element of each result, if the case is affected."""
        return change_last_element(call) if is_affected(call.case) else Effect.not_applicable

    return corrupt


def _tensors(case: BaselineCase) -> Iterator[BaselineTensor | Expected]:
    """Yield the tensors of the arguments and of the expected results of a case."""
    for value in case.arguments.values():
        yield from tensors_in(value)
    for value in case.expected.values():
        yield from expected_arrays(value)


def _has_many_axes(case: BaselineCase) -> bool:
    """Return whether a tensor of the case has more than `MAX_AXES` axes."""
    return any(tensor.values.ndim > MAX_AXES for tensor in _tensors(case))


def _is_misaligned(case: BaselineCase) -> bool:
    """Return whether a contiguous tensor of the case begins at an address that is not a multiple of `VECTOR_BYTES`."""
    return any(_is_contiguous_at_odd_address(tensor) for tensor in _tensors(case))


def _is_contiguous_at_odd_address(tensor: BaselineTensor | Expected) -> bool:
    """Return whether a tensor is row-major without gaps and its offset in bytes is not a multiple of `VECTOR_BYTES`."""
    offset = _dense_offset(tensor)
    return offset is not None and offset % VECTOR_BYTES != 0


def _is_dense_at_start(tensor: BaselineTensor | Expected) -> bool:
    """Return whether a tensor is row-major without gaps and begins at the beginning of its storage."""
    return _dense_offset(tensor) == 0


def _dense_offset(tensor: BaselineTensor | Expected) -> int | None:
    """Return the offset of a row-major tensor without gaps in its storage in bytes; None for other tensors."""
    shape = tensor.values.shape
    if not tensor.values.size or tensor.layout is None:
        return None
    place = layout_named(tensor.layout)(shape)
    row_major = layout_named("contiguous")(shape).strides
    is_dense = all(
        size == 1 or step == dense for size, step, dense in zip(shape, place.strides, row_major, strict=True)
    )
    return place.offset * to_numpy(tensor.dtype).itemsize if is_dense else None
