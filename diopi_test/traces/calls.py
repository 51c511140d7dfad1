"""`TracedCall`, a call of a network without data, and `NetworkTrace`, the calls of a training step; their text form.

A tensor is written `float32[2,64,56,56]`. If it is not row-major and dense, its strides in elements follow. For a
tensor of integers, the smallest and the largest element follow: `int64[8,2] strides 1,8 in 0..511`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from diopi_proto.dtypes import is_complex, is_floating
from diopi_proto.types import Dtype

_TENSOR = re.compile(
    r"(?P<dtype>[a-z]+\d*)\[(?P<shape>[\d,]*)\](?: strides (?P<strides>[\d,]+))?"
    r"(?: in (?P<least>-?\d+)\.\.(?P<most>-?\d+))?"
)
"""A tensor in a trace: `float32[2,3] strides 1,2`, or `int64[4] in 0..7` for integers with known bounds."""


class TraceError(ValueError):
    """A file is not a valid trace; the message gives the location and the reason."""


def dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in elements, of a row-major tensor without gaps."""
    return tuple(prod(max(size, 1) for size in shape[axis + 1 :]) for axis in range(len(shape)))


@dataclass(frozen=True, kw_only=True)
class TracedTensor:
    """A tensor of a call, described without its elements.

    Attributes:
        shape: The sizes.
        dtype: The element type.
        strides: The strides in elements.
        bounds: The smallest and the largest element of a tensor of integers; None for other and for empty tensors.
    """

    shape: tuple[int, ...]
    dtype: Dtype
    strides: tuple[int, ...]
    bounds: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        """Normalize the strides of dense row-major tensors: the stride of an axis of size 1 is arbitrary."""
        dense = dense_strides(self.shape)
        axes = zip(self.shape, self.strides, dense, strict=True)
        if 0 in self.shape or all(size == 1 or stride == step for size, stride, step in axes):
            object.__setattr__(self, "strides", dense)

    @classmethod
    def parse(cls, text: str, location: str) -> TracedTensor:
        """Return the tensor that a text describes; raise TraceError, which begins with `location`, on mismatch."""
        match = _TENSOR.fullmatch(text)
        if not match or match["dtype"] not in Dtype.__members__:
            raise TraceError(f"{location}: expected a tensor such as float32[2,3], found {text!r}")
        shape = _parse_integers(match["shape"])
        strides = dense_strides(shape) if match["strides"] is None else _parse_integers(match["strides"])
        if len(strides) != len(shape):
            raise TraceError(f"{location}: {text!r} has {len(strides)} strides, expected {len(shape)}")
        bounds = None if match["least"] is None else (int(match["least"]), int(match["most"]))
        if bounds and bounds[0] > bounds[1]:
            raise TraceError(
                f"{location}: {text!r} has the bounds {bounds[0]}..{bounds[1]}, expected the smaller bound first"
            )
        return cls(shape=shape, dtype=Dtype[match["dtype"]], strides=strides, bounds=bounds)

    def __str__(self) -> str:
        sizes = ",".join(map(str, self.shape))
        strides = "" if self.is_dense else " strides " + ",".join(map(str, self.strides))
        bounds = "" if self.bounds is None else f" in {self.bounds[0]}..{self.bounds[1]}"
        return f"{self.dtype.name}[{sizes}]{strides}{bounds}"

    @property
    def is_dense(self) -> bool:
        """Whether the tensor is row-major without gaps."""
        return self.strides == dense_strides(self.shape)


@dataclass(frozen=True, kw_only=True)
class TracedCall:
    """One call of a function of the standard, without data.

    Attributes:
        function: The name of the function.
        arguments: The arguments by name, in the prototype's order: a `TracedTensor`, a list of tensors and None, None,
            or an attribute. A scalar is a number, a list of integers is a tuple, an enumerator is its name.
        results: The tensors that the caller passes for results, by name; None for a result that it does not request.
            Results whose sizes the callee decides are absent.
        count: The number of times that a step makes this call.
    """

    function: str
    arguments: Mapping[str, Any]
    results: Mapping[str, Any] = field(default_factory=dict)
    count: int = 1

    @property
    def key(self) -> str:
        """The text of the call without the count, which identifies the call; `>` marks the names of results."""
        values = {**self.arguments, **{f">{name}": value for name, value in self.results.items()}}
        return " ".join([self.function, *(f"{name}={as_text(value)}" for name, value in values.items())])

    @property
    def tensors(self) -> Sequence[TracedTensor]:
        """The tensors of the call: the arguments, then the results."""
        values = (*self.arguments.values(), *self.results.values())
        entries = (entry for value in values for entry in (value if isinstance(value, list) else [value]))
        return [entry for entry in entries if isinstance(entry, TracedTensor)]

    @property
    def dtype(self) -> Dtype:
        """The element type of the first floating-point or complex tensor, else of the first tensor, else float32."""
        dtypes = [tensor.dtype for tensor in self.tensors]
        return next(
            (dtype for dtype in dtypes if is_floating(dtype) or is_complex(dtype)), next(iter(dtypes), Dtype.float32)
        )

    @property
    def label(self) -> str:
        """The label of the case that the call becomes: element type, shape, and a digest of the complete call."""
        digest = hashlib.sha256(self.key.encode()).hexdigest()[:10]
        shape = next((tensor.shape for tensor in self.tensors), ())
        return "-".join([self.dtype.name, "x".join(map(str, shape)) or "scalar", digest])


@dataclass(frozen=True)
class NetworkTrace:
    """The calls of one training step of a network.

    Attributes:
        name: The name of the network.
        calls: The distinct calls of functions of the standard, sorted by `key`; each has the number of its repetitions.
        not_mapped: Operators of PyTorch that map to no function of the standard, with the number of their calls.
    """

    name: str
    calls: tuple[TracedCall, ...]
    not_mapped: Mapping[str, int] = field(default_factory=dict)

    @property
    def functions(self) -> Mapping[str, int]:
        """The number of calls by function."""
        counts: dict[str, int] = {}
        for call in self.calls:
            counts[call.function] = counts.get(call.function, 0) + call.count
        return counts


def as_text(value: Any) -> str:
    """Return an argument or result as text: `null` for None, parentheses around lists, and `str` of other values."""
    if isinstance(value, list | tuple):
        return "(" + ",".join(map(as_text, value)) + ")"
    return "null" if value is None else str(value)


def _parse_integers(text: str) -> tuple[int, ...]:
    """Return the integers in a text, which commas separate."""
    return tuple(int(number) for number in text.split(",") if number)
