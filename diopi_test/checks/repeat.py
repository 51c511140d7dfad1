"""The same call gives the same result again, wherever in memory its tensors lie."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from diopi_proto.prototype import Prototype
from diopi_test.baseline import Expected
from diopi_test.run import Run
from diopi_test.series import Series
from diopi_test.verdict import Finding

UNORDERED_PARAMETERS = {"accumulate", "reduce"}
"""Parameters of functions that add up at the places an index tensor names."""


def promises_bits(prototype: Prototype) -> bool:
    """Whether the standard promises the same bits each time.

    Exact results have no choice. Rounded ones have, but for gradients and sums at indices: there parallel hardware
    adds in the order it happens to come in, as PyTorch lists under `torch.use_deterministic_algorithms`.
    """
    if prototype.promise != "rounded":
        return prototype.promise == "exact"
    unordered = any(parameter.name in UNORDERED_PARAMETERS for parameter in prototype.parameters)
    return not unordered and not prototype.base.endswith("Backward")


def check(series: Series) -> Finding | None:
    """A second call with equal inputs gives right results again, and bit for bit the same ones.

    The tensors of the second call are others and lie at other offsets in their storages, by a multiple of 256 bytes: a
    sound kernel may work, and so round, in another order if the alignment changes. Only right, not equal, need be: the
    results of functions that promise no bits (`promises_bits`), those whose meaning is judged, and elements the
    standard leaves open.
    """
    if series.queued is None or series.first.run is None:
        return None
    again = series.waited or series.queued
    problem = again.problem
    if again.run is not None and not problem and promises_bits(series.first.run.prototype):
        problem = _difference(series.first.run, again.run)
    return Finding("repeat", not problem, f"a second call: {problem}" if problem else "")


def _difference(first: Run, again: Run) -> str:
    """Where the bits of the results differ; empty if nowhere."""
    pairs = [
        (one.name, one.values, other.values, expected)
        for (one, expected), (other, _) in zip(first.results(), again.results(), strict=True)
        if not expected.judged
    ]
    pairs += [
        (one.name, np.asarray(one.given), np.asarray(other.given), one.expected)
        for one, other in zip(first.values, again.values, strict=True)
    ]
    return "; ".join(text for pair in pairs if (text := _describe(*pair)))


def _describe(name: str, before: NDArray[np.generic], after: NDArray[np.generic], expected: Expected) -> str:
    """`out: 3 of 15 elements have other bits, the first at (0, 2): 1.25, 1.5 before`; empty if none have."""
    differ = _bits(before) != _bits(after)
    if expected.specified is not None:
        differ &= expected.specified.reshape(differ.shape)
    if not differ.any():
        return ""
    first = tuple(int(i) for i in np.argwhere(differ)[0])
    count = f"{int(differ.sum())} of {differ.size} elements"
    return f"{name}: {count} have other bits, the first at {first}: {after[first]}, {before[first]} before"


def _bits(array: NDArray[np.generic]) -> NDArray[np.void]:
    """The elements as bare bytes, which are equal where all bits are."""
    return np.ascontiguousarray(array).reshape(array.shape).view(np.dtype((np.void, array.itemsize)))
