"""Probes of NaN: which bits of a NaN argument appear in the result, and which bits a newly created NaN has.

The bits of a NaN are its sign, the quiet bit (0 in a signaling NaN), and the payload, which can have any value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np

from diopi_proto.dtypes import ELEMENT_SIZE, floating
from diopi_proto.types import Dtype, RoundMode
from diopi_test.fingerprint.probe import Observations, Probe, ProbedOperator, single_variants
from lib_rt.dtypes import Array, to_numpy
from lib_rt.formats import FORMATS

COPIES = 32
"""Number of copies of each number in a call, to fill the vector registers of a processor; their results must agree."""

PAYLOADS = (0b010110, 0b001011)
"""The payloads of two NaNs, in the six bits below the quiet bit; every format has at least six."""


@final
@dataclass(frozen=True)
class Bits:
    """The bits of a floating-point type.

    Properties are masks of the parts of a number. Methods convert between arrays and the bits of numbers, which are
    represented by Python integers.

    Attributes:
        dtype: the floating-point type.
    """

    dtype: Dtype

    @property
    def fraction(self) -> int:
        """Number of bits of the fraction."""
        return FORMATS[self.dtype].precision - 1

    @property
    def sign(self) -> int:
        """The mask of the sign bit."""
        return int(1 << (8 * ELEMENT_SIZE[self.dtype] - 1))

    @property
    def quiet(self) -> int:
        """The mask of the quiet bit."""
        return 1 << (self.fraction - 1)

    @property
    def infinity(self) -> int:
        """The bits of infinity, which every NaN has as well."""
        return self.sign - (1 << self.fraction)

    def nan(self, payload: int, *, quiet: bool, negative: bool = False) -> int:
        """Return the bits of a NaN.

        Args:
            payload: The six bits that follow the quiet bit.
            quiet: Whether the NaN is quiet; otherwise it is signaling.
            negative: Whether the sign bit is set.
        """
        return self.infinity | self.quiet * quiet | payload << (self.fraction - 7) | self.sign * negative

    def payload(self, bits: int) -> int:
        """Return the payload of the NaN with these bits: the six bits below the quiet bit."""
        return bits >> (self.fraction - 7) & 0b111111

    def is_nan(self, bits: int) -> bool:
        """Return whether the number with these bits is NaN."""
        return bits & ~self.sign > self.infinity

    def array(self, *numbers: int) -> Array:
        """Return an array of the numbers with these bits, each `COPIES` times."""
        unsigned = np.dtype(f"u{ELEMENT_SIZE[self.dtype]}")
        return np.repeat(np.array(numbers, unsigned), COPIES).view(to_numpy(self.dtype))

    def numbers(self, array: Array) -> list[int]:
        """Return the bits of each number of an array with `COPIES` copies; −1 if the copies differ."""
        unsigned = np.ascontiguousarray(array).view(f"u{ELEMENT_SIZE[self.dtype]}").reshape(-1, COPIES)
        return [int(row[0]) if (row == row[0]).all() else -1 for row in unsigned]

    def in_words(self, bits: int) -> str:
        """Return a description of the number with these bits: a name of a common NaN, or the bits in hexadecimal."""
        if bits < 0:
            return "different from place to place"
        plain = {
            self.infinity | self.quiet: "default",
            self.infinity | self.quiet | self.sign: "default, negative",
            self.sign | self.sign - 1: "all bits set",
        }
        return plain.get(bits, f"0x{bits:0{2 * ELEMENT_SIZE[self.dtype]}x}" + ("" if self.is_nan(bits) else ", no NaN"))


def _rows(*columns: Array) -> tuple[Any, ...]:
    """Return the arguments with which diopiSum sums the rows of a matrix with these columns."""
    return (np.stack(columns, axis=1), (1,))


def _factors(*columns: Array) -> tuple[Any, ...]:
    """Return the arguments with which diopiMm multiplies a matrix with these columns by a column of ones."""
    return np.stack(columns, axis=1), np.ones((len(columns), 1), columns[0].dtype)


@final
@dataclass(frozen=True)
class NanProbe:
    """How one function is probed with NaNs.

    Attributes:
        call: a function that receives the operands and returns all arguments of the call.
        operands: the number of operands.
        invalid: operands that are not NaN but whose result is NaN; None if the function never creates a NaN.
    """

    call: Callable[..., tuple[Any, ...]] = lambda *operands: operands
    operands: int = 1
    invalid: Sequence[float] | None = None


PROBED_FUNCTIONS: Mapping[str, NanProbe] = {
    "diopiCopyInp": NanProbe(),
    "diopiNeg": NanProbe(),
    "diopiAbs": NanProbe(),
    "diopiMaximum": NanProbe(operands=2),
    "diopiAdd": NanProbe(lambda x, y: (x, y, 1), 2, (np.inf, -np.inf)),
    "diopiMul": NanProbe(operands=2, invalid=(0.0, np.inf)),
    "diopiDiv": NanProbe(lambda x, y: (x, y, RoundMode.none), 2, (0.0, 0.0)),
    "diopiSqrt": NanProbe(invalid=(-1.0,)),
    "diopiExp": NanProbe(),
    "diopiLog": NanProbe(invalid=(-1.0,)),
    "diopiSum": NanProbe(_rows, 2, (np.inf, -np.inf)),
    "diopiMm": NanProbe(_factors, 2, (np.inf, -np.inf)),
}
"""How each function is probed, by its name."""


def measure(operator: ProbedOperator, dtype: Dtype, *, probe: NanProbe) -> Observations:
    """Observe what quiet and signaling NaNs become, which of two NaNs is the result, and what a new NaN looks like.

    Args:
        operator: the function.
        dtype: the element type of the operands and the result.
        probe: how the function is probed.

    Returns:
        The observations `quiet` and `signaling`; `of two` for a function of two operands; and `made` if it can create a
        NaN.
    """
    bits = Bits(dtype)
    ones = np.ones(2 * COPIES, to_numpy(dtype))

    def call(*operands: Array) -> list[int]:
        shape = (len(operands[0]), 1) if probe.call is _factors else operands[0].shape
        return bits.numbers(operator(*probe.call(*operands), shape=shape, dtype=dtype))

    def describe_result(quiet: bool) -> str:
        inputs = [bits.nan(PAYLOADS[0], quiet=quiet, negative=negative) for negative in (False, True)]
        return describe_propagation(bits, inputs, call(bits.array(*inputs), *[ones] * (probe.operands - 1)))

    observations = {"quiet": describe_result(True), "signaling": describe_result(False)}
    if probe.operands == 2:
        first, second = (bits.nan(payload, quiet=True) for payload in PAYLOADS)
        observations["of two"] = _describe_chosen_operand(
            bits, first, second, call(bits.array(first, second), bits.array(second, first))
        )
    if probe.invalid is not None:
        produced = call(*(np.full(2 * COPIES, number, to_numpy(dtype)) for number in probe.invalid))
        observations["made"] = _list(bits, produced)
    return observations


def describe_propagation(bits: Bits, inputs: Sequence[int], result: Sequence[int]) -> str:
    """Describe which parts of NaN arguments are in the results.

    Args:
        bits: the parts of the format.
        inputs: the bits of a NaN and of its negative.
        result: the bits of the results for both.

    Returns:
        "kept" if the results have the same bits; "payload kept" and the other changes if they have the payload; and
        otherwise a description of the results.
    """
    if list(inputs) == list(result):
        return "kept"
    payloads = [bits.payload(number) for number in inputs]
    if payloads != [bits.payload(number) for number in result] or not all(map(bits.is_nan, result)):
        return _list(bits, result)
    return ", ".join(["payload kept", *_changes(bits, inputs, result)])


def _list(bits: Bits, numbers: Sequence[int]) -> str:
    """Return descriptions of the distinct numbers that have these bits, separated by slashes."""
    return " / ".join(dict.fromkeys(bits.in_words(number) for number in numbers))


def _changes(bits: Bits, inputs: Sequence[int], result: Sequence[int]) -> list[str]:
    """Return descriptions of how the sign and the quiet bit changed, such as "sign flipped" and "made quiet".

    Args:
        bits: the parts of the format.
        inputs: the bits of a NaN and of its negative.
        result: the bits of the results for both.
    """
    input_signs, result_signs = ([bool(number & bits.sign) for number in numbers] for numbers in (inputs, result))
    changes = []
    if input_signs != result_signs:
        changes.append(
            "sign flipped"
            if input_signs == [not is_negative for is_negative in result_signs]
            else f"sign {'set' if result_signs[0] else 'cleared'}"
        )
    if not inputs[0] & bits.quiet and result[0] & bits.quiet:
        changes.append("made quiet")
    return changes


def _describe_chosen_operand(bits: Bits, first: int, second: int, result: Sequence[int]) -> str:
    """Return in words which of two NaN operands is the result: "the first" or "the second"; otherwise the results.

    Args:
        bits: the parts of the format.
        first: the bits of a NaN.
        second: the bits of another NaN.
        result: the bits of the results for the operands (first, second) and (second, first).
    """
    for name, expected in (("the first", [first, second]), ("the second", [second, first])):
        if list(result) == expected:
            return name
    return _list(bits, result)


def measure_conversion(operator: ProbedOperator, source: Dtype, target: Dtype) -> Observations:
    """Observe which parts of a NaN appear in its conversion to another type. Only the six bits of the payload count.

    Args:
        operator: the function that converts.
        source: the element type of the NaN.
        target: the element type of the result.

    Returns:
        The observations `quiet` and `signaling`, in words.
    """
    source_bits, target_bits = Bits(source), Bits(target)

    def describe_result(quiet: bool) -> str:
        signs = (False, True)
        inputs = source_bits.array(*(source_bits.nan(PAYLOADS[0], quiet=quiet, negative=sign) for sign in signs))
        result = target_bits.numbers(operator(inputs, shape=inputs.shape, dtype=target))
        return describe_propagation(
            target_bits, [target_bits.nan(PAYLOADS[0], quiet=quiet, negative=sign) for sign in signs], result
        )

    return {"quiet": describe_result(True), "signaling": describe_result(False)}


PROBES = (
    *(
        Probe(function=function, measure=partial(measure, probe=probe), variants=single_variants(*floating))
        for function, probe in PROBED_FUNCTIONS.items()
    ),
    Probe(
        function="diopiCastDtype",
        measure=measure_conversion,
        variants=[(source, target) for source in floating for target in floating if source != target],
    ),
)
