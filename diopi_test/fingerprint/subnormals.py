"""Probes of subnormal numbers: whether a vendor keeps them or flushes them to zero, as arguments and as results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_proto.dtypes import floating
from diopi_proto.types import Dtype, RoundMode
from diopi_test.fingerprint.probe import Observations, Probe, ProbedOperator, single_variants
from lib_rt.dtypes import to_numpy
from lib_rt.formats import FORMATS, Format, flush_to_zero, ulp

Floats = NDArray[np.float64]


def subnormals(form: Format) -> Floats:
    """Return eight subnormal numbers of a format, positive and negative, including the smallest and the largest."""
    steps = np.array([1, 3, 2 ** (form.precision - 2), 2 ** (form.precision - 1) - 1])
    return form.subnormal * np.concatenate([steps, -steps])


Arguments = Callable[[Floats, float, float], tuple[Floats, ...]]
"""A function that returns the tensor arguments of a call.

It receives subnormal numbers s, the smallest normal number t, and a scale c: a power of two for which every s · c is a
normal number.
"""


@final
@dataclass(frozen=True, kw_only=True)
class SubnormalProbe:
    """How one function is probed with subnormal numbers.

    Attributes:
        truth: the function in NumPy, which receives the tensor arguments in float64.
        arguments: for each observed aspect, a function that returns the tensor arguments of the call. The aspects are
            "moved" (the function only copies or compares numbers), "arguments" (only arguments are subnormal) and
            "results" (only results are subnormal).
        attributes: the remaining arguments of the call.
        result: the element type of the result, if it is not the type of the arguments.
    """

    truth: Callable[..., Any]
    arguments: Mapping[str, Arguments]
    attributes: Sequence[Any] = ()
    result: Dtype | None = None


def _as_columns(*columns: Floats) -> Floats:
    """Return a matrix with these columns."""
    return np.stack(columns, axis=1)


def _with_sign(size: float, sign: Floats) -> Floats:
    """Return numbers of the magnitude `size` with the signs of the elements of `sign`."""
    return np.copysign(size, sign)


# In the following table, s, t and c are the parameters of `Arguments`.
PROBED_FUNCTIONS = {
    "diopiNeg": SubnormalProbe(truth=np.negative, arguments={"moved": lambda s, t, c: (s,)}),
    "diopiCopyInp": SubnormalProbe(truth=np.array, arguments={"moved": lambda s, t, c: (s,)}),
    "diopiMaximum": SubnormalProbe(
        truth=np.maximum, arguments={"moved": lambda s, t, c: (s, _with_sign(2 * t, s) - 2 * t)}
    ),
    "diopiGt": SubnormalProbe(
        truth=np.greater, arguments={"arguments": lambda s, t, c: (np.abs(s), 0 * s)}, result=Dtype.bool
    ),
    "diopiAdd": SubnormalProbe(
        truth=np.add,
        arguments={
            "arguments": lambda s, t, c: (s, _with_sign(t, s)),
            "results": lambda s, t, c: (s + _with_sign(t, s), -_with_sign(t, s)),
        },
        attributes=[1],
    ),
    "diopiMul": SubnormalProbe(
        truth=np.multiply,
        arguments={
            "arguments": lambda s, t, c: (s, np.full_like(s, c)),
            "results": lambda s, t, c: (s * c, np.full_like(s, 1 / c)),
        },
    ),
    "diopiDiv": SubnormalProbe(
        truth=np.divide,
        arguments={
            "arguments": lambda s, t, c: (np.append(s, _with_sign(t, s)), np.append(np.full_like(s, 1 / c), s)),
            "results": lambda s, t, c: (s * c, np.full_like(s, c)),
        },
        attributes=[RoundMode.none],
    ),
    "diopiSqrt": SubnormalProbe(truth=np.sqrt, arguments={"arguments": lambda s, t, c: (np.abs(s),)}),
    "diopiLog": SubnormalProbe(truth=np.log, arguments={"arguments": lambda s, t, c: (np.abs(s),)}),
    "diopiExp": SubnormalProbe(truth=np.exp, arguments={"results": lambda s, t, c: (np.log(np.abs(s) / 2 + t / 8),)}),
    "diopiSum": SubnormalProbe(
        truth=lambda rows: rows.sum(1),
        arguments={
            "arguments": lambda s, t, c: (_as_columns(s, _with_sign(t, s)),),
            "results": lambda s, t, c: (_as_columns(s + _with_sign(t, s), -_with_sign(t, s)),),
        },
        attributes=[(1,)],  # the summed axis
    ),
    "diopiMm": SubnormalProbe(
        truth=np.matmul,
        arguments={
            "arguments": lambda s, t, c: (_as_columns(s, 0 * s), np.array([[c], [1.0]])),
            "results": lambda s, t, c: (_as_columns(s * c, 0 * s), np.array([[1 / c], [1.0]])),
        },
    ),
}
"""How each function is probed, by its name."""


def measure(operator: ProbedOperator, dtype: Dtype, *, probe: SubnormalProbe) -> Observations:
    """Observe whether a function keeps subnormal numbers or flushes them to zero.

    Args:
        operator: the function.
        dtype: the element type of the arguments.
        probe: how the function is probed.

    Returns:
        A text as `describe_flushing` returns it for each aspect of `probe.arguments`.
    """
    form = FORMATS[dtype]
    operands = subnormals(form), form.tiny, 2.0**form.precision
    return {
        aspect: _call_and_describe(operator, dtype, probe, arguments(*operands))
        for aspect, arguments in probe.arguments.items()
    }


def _call_and_describe(operator: ProbedOperator, dtype: Dtype, probe: SubnormalProbe, values: Sequence[Floats]) -> str:
    """Call the operator with tensor arguments `values`; return what `describe_flushing` says about its results."""
    arguments = [value.astype(to_numpy(dtype)) for value in values]
    exact = [argument.astype(np.float64) for argument in arguments]
    with np.errstate(all="ignore"):
        exact_result = probe.truth(*exact)
        flushed = probe.truth(*(flush_to_zero(value, dtype) for value in exact))
    result = operator(*arguments, *probe.attributes, shape=exact_result.shape, dtype=probe.result or dtype)
    return describe_flushing(
        result.astype(np.float64),
        exact_result.astype(np.float64),
        flush_to_zero(flushed.astype(np.float64), dtype),
        dtype,
    )


def describe_flushing(result: Floats, exact_result: Floats, flushed: Floats, dtype: Dtype) -> str:
    """Describe whether a vendor kept subnormal numbers or flushed them to zero.

    Args:
        result: the results of the vendor.
        exact_result: the results without flushing; results within two units in the last place count as `kept`.
        flushed: the results if the subnormal numbers are flushed.
        dtype: the element type of the arguments.

    Returns:
        "kept", "flushed", or the number of kept results. If a result is neither exact nor flushed, an example. If an
        element of `exact_result` equals that of `flushed`, "not seen: …": the vendor has switched this process to
        flushing, so that NumPy flushes as well.
    """
    if (exact_result == flushed).any():
        return "not seen: the vendor makes this process flush them"
    is_flushed = result == flushed
    is_kept = ~is_flushed & (np.abs(result - exact_result) <= 2 * ulp(exact_result, dtype))
    if is_kept.all():
        return "kept"
    if not (is_kept | is_flushed).all():
        example = int(np.argmin(is_kept | is_flushed))
        return f"{result.flat[example]:.6g} for {exact_result.flat[example]:.6g}"
    if is_kept.any():
        return f"kept in {np.count_nonzero(is_kept)} of {exact_result.size}"
    same_sign = np.signbit(result) == np.signbit(flushed)
    return "flushed" if same_sign.all() else "flushed, sign of zero lost"


PROBES = tuple(
    Probe(function=function, measure=partial(measure, probe=probe), variants=single_variants(*floating))
    for function, probe in PROBED_FUNCTIONS.items()
)
