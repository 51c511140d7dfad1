"""The records of a baseline: cases with their arguments and expected results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_proto.interface import lookup
from diopi_proto.parameters import Generator
from diopi_proto.types import Dtype
from diopi_test.cases.case import CaseClass
from diopi_test.oracle.budget import Budget
from diopi_test.oracle.data import convert, is_mask, widen

if TYPE_CHECKING:
    from diopi_impl.numerics.declaration import ErrorBound


@final
@dataclass(frozen=True)
class BaselineTensor:
    """A tensor argument as a vendor receives it.

    Attributes:
        values: the exact values, in the tensor's element type.
        dtype: the element type.
        layout: the name of the layout.
    """

    values: NDArray[Any]
    dtype: Dtype
    layout: str


@final
@dataclass(frozen=True, kw_only=True)
class Expected:
    """An expected result array.

    Attributes:
        values: The reference's result: float64 or complex128 for floating-point and complex types, else of type
            `dtype`. It is exact if `budget` is None.
        dtype: The element type of the result tensor.
        layout: The name of the layout of the result tensor, such as "contiguous".
        budget: The error budget of each element; None if the result must be exact.
        flushed: The reference's result for inputs whose subnormal numbers are flushed to zero; None if it equals
            `values`.
        specified: A mask of the elements that the standard specifies; None if it specifies all of them.
        may_flush: Whether subnormal results, and results of subnormal inputs, may be flushed to zero.
        has_signed_zeros: Whether the sign of a zero matters.
        needs_validator: Whether `values` is one of several valid results, so that the function's validator decides
            whether an actual result is valid.
        change: By how much a declared arithmetic changes each element of a result that needs a validator; None if it
            changes none. The budgets of other results include the change.
    """

    values: NDArray[Any]
    dtype: Dtype
    layout: str = "contiguous"
    budget: Budget | None = None
    flushed: NDArray[Any] | None = None
    specified: NDArray[np.bool_] | None = None
    may_flush: bool = True
    has_signed_zeros: bool = True
    needs_validator: bool = False
    change: NDArray[np.float64] | None = None

    def repeat(self, shape: tuple[int, ...]) -> Expected:
        """Return the expected result with its elements repeated, in row-major order, until it has the shape `shape`."""

        def repeat(array: NDArray[Any] | None) -> Any:
            return None if array is None else np.resize(array, shape)

        return replace(
            self,
            values=repeat(self.values),
            budget=None if self.budget is None else Budget(repeat(self.budget.unit)),
            flushed=repeat(self.flushed),
            specified=repeat(self.specified),
        )


def tensors_in(value: Any) -> list[BaselineTensor]:
    """Return the tensors in an argument of a case as a list; empty for an attribute."""
    return [entry for entry in (value if isinstance(value, list) else [value]) if isinstance(entry, BaselineTensor)]


def expected_arrays(expected: Expected | list[Expected] | None) -> list[Expected]:
    """Return the expected arrays of a result as a list; empty if the result is omitted."""
    if expected is None:
        return []
    return expected if isinstance(expected, list) else [expected]


@final
@dataclass(frozen=True, kw_only=True)
class SharedStorage:
    """Two tensor arguments with a common storage: contiguous tensors that overlap, or a tensor and its transpose.

    Attributes:
        first: the name of the argument at the beginning of the common storage; it comes first in the call.
        second: the name of the other argument.
        shift: the number of elements between the first elements of the two tensors.
        transposes: whether the second argument is a view of the first one with its last two axes exchanged.
    """

    first: str
    second: str
    shift: int
    transposes: bool = False

    def join(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
        """Return the elements of the common storage; the second tensor determines the shared elements."""
        stored = second.swapaxes(-1, -2) if self.transposes else second
        elements = np.empty(max(first.size, self.shift + second.size), first.dtype)
        elements[: first.size] = first.ravel()
        elements[self.shift : self.shift + second.size] = stored.ravel()
        return elements


@final
@dataclass(frozen=True, kw_only=True)
class DeclaredPrecision:
    """The errors that a declared arithmetic adds to float32 computations, for the validator of a result.

    Attributes:
        elementary: the error bounds of elementary functions by name.
        sum_epsilon: the eps of the half-precision type in which sums are accumulated; 0 for float32.
    """

    elementary: Mapping[str, Sequence[ErrorBound]] = field(default_factory=dict)
    sum_epsilon: float = 0.0


@final
@dataclass(frozen=True, kw_only=True)
class BaselineCase:
    """A complete case: arguments, expected results and properties of a call.

    Attributes:
        function: the name of the standard function.
        label: the name of the case among the cases of the function.
        dtype: the element type under test.
        arguments: by name, a `BaselineTensor`, a list of them, None, or an attribute.
        expected: by name, the expected result; a list for an array of results, None for a result that the caller omits.
        smoke: whether the case belongs to the smoke level; such a case is called more than once.
        case_class: the class of the case.
        aliases: maps a parameter, or `name.number` for an entry of an array, to the argument or entry whose tensor is
            also passed for it.
        has_unordered_sums: whether the order of additions may vary between equal calls, as the vendor declares.
        overlap: two tensor arguments that share a part of their storage; None if no arguments do.
        precision: the declared errors that the validator of the results allows for.
    """

    function: str
    label: str
    dtype: Dtype
    arguments: Mapping[str, Any]
    expected: Mapping[str, Expected | list[Expected] | None]
    smoke: bool = False
    case_class: CaseClass = CaseClass.basic
    aliases: Mapping[str, str] = field(default_factory=dict)
    overlap: SharedStorage | None = None
    has_unordered_sums: bool = False
    precision: DeclaredPrecision = DeclaredPrecision()

    @property
    def id(self) -> str:
        """Return the ID of the case: `function[label]`."""
        return f"{self.function}[{self.label}]"

    @property
    def draws(self) -> bool:
        """Return whether results are random: in all calls of the function, or in this call because of its generator."""
        prototype = lookup(self.function)
        has_generator = any(parameter.annotation is Generator for parameter in prototype.arguments)
        return prototype.guarantee == "random" or (has_generator and self.needs_validator)

    @property
    def needs_validator(self) -> bool:
        """Return whether a validator decides about at least one result."""
        return any(array.needs_validator for value in self.expected.values() for array in expected_arrays(value))

    def plain_arguments(self) -> dict[str, Any]:
        """Return the arguments as the reference takes them, after the type conversions that the standard requires."""
        plain = {name: self._to_plain(name, value) for name, value in self.arguments.items()}
        prototype = lookup(self.function)
        results = [array for value in self.expected.values() for array in expected_arrays(value)]
        dtypes = {name: value.dtype for name, value in self.arguments.items() if isinstance(value, BaselineTensor)}
        if not results:
            return plain
        names, dtype = prototype.find_conversions(dtypes, plain, results[0].dtype)
        return {**plain, **{name: convert(plain[name], dtype) for name in names}}

    def _to_plain(self, name: str, value: Any) -> Any:
        """Convert a stored argument, or each entry of a list, to the type in which the reference computes."""
        if isinstance(value, list):
            return [self._to_plain(name, entry) for entry in value]
        if not isinstance(value, BaselineTensor):
            return value
        if is_mask(lookup(self.function), name, value.dtype):
            return value.values != 0
        return widen(value.values, value.dtype)
