"""`Call`: one call a network makes, without its data; `Model` is what a step of a network calls. Their form as text.

A tensor is written `float32[2,64,56,56]`. What is not row-major and dense has its strides after it, in elements, and
what holds indices, lengths or classes has the least and the greatest of them: `int64[8,2] strides 1,8 in 0..511`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from diopi_proto.types import Dtype

_TENSOR = re.compile(
    r"(?P<dtype>[a-z]+\d*)\[(?P<shape>[\d,]*)\](?: strides (?P<strides>[\d,]+))?"
    r"(?: in (?P<least>-?\d+)\.\.(?P<most>-?\d+))?"
)


class TraceError(ValueError):
    """What was read is no file of calls; the message says where and why."""


def dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides, in elements, of a row-major tensor without gaps."""
    return tuple(prod(max(size, 1) for size in shape[axis + 1 :]) for axis in range(len(shape)))


@dataclass(frozen=True)
class TracedTensor:
    """A tensor of a call.

    Attributes:
        shape, dtype: its sizes and element type.
        strides: in elements.
        bounds: the least and the greatest of its numbers, where it is of integers; None if it has none.
    """

    shape: tuple[int, ...]
    dtype: Dtype
    strides: tuple[int, ...]
    bounds: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        """Give dense row-major tensors one form: the stride of an axis of one element means nothing."""
        usual = dense_strides(self.shape)
        axes = zip(self.shape, self.strides, usual, strict=True)
        if 0 in self.shape or all(size == 1 or stride == step for size, stride, step in axes):
            object.__setattr__(self, "strides", usual)

    @classmethod
    def parse(cls, text: str, location: str) -> TracedTensor:
        """The tensor that `text` describes; ModelError, begun with `where`, if it describes none."""
        found = _TENSOR.fullmatch(text)
        if not found or found["dtype"] not in Dtype.__members__:
            raise TraceError(f"{location}: expected a tensor such as float32[2,3], found {text!r}")
        shape = _numbers(found["shape"])
        strides = dense_strides(shape) if found["strides"] is None else _numbers(found["strides"])
        if len(strides) != len(shape):
            raise TraceError(f"{location}: {text!r} has {len(strides)} strides, expected {len(shape)}")
        bounds = None if found["least"] is None else (int(found["least"]), int(found["most"]))
        if bounds and bounds[0] > bounds[1]:
            raise TraceError(f"{location}: {text!r} has no number between {bounds[0]} and {bounds[1]}")
        return cls(shape, Dtype[found["dtype"]], strides, bounds)

    def __str__(self) -> str:
        sizes = ",".join(map(str, self.shape))
        strides = "" if self.is_dense else " strides " + ",".join(map(str, self.strides))
        bounds = "" if self.bounds is None else f" in {self.bounds[0]}..{self.bounds[1]}"
        return f"{self.dtype.name}[{sizes}]{strides}{bounds}"

    @property
    def is_dense(self) -> bool:
        """Whether its elements lie row by row, without gaps."""
        return self.strides == dense_strides(self.shape)


@dataclass(frozen=True)
class TracedCall:
    """One call of a function.

    Attributes:
        function: its name.
        arguments: by name, in the prototype's order: `TracedTensor`, list of them (with None where there is none),
            None, or an attribute. A scalar is a number, a list of integers a tuple, an enumerator its name.
        results: what the caller passes for a result, by name; None for one it does not want. Results whose sizes the
            callee decides are not named.
        count: how often a step makes it.
    """

    function: str
    arguments: Mapping[str, Any]
    results: Mapping[str, Any] = field(default_factory=dict)
    count: int = 1

    @property
    def key(self) -> str:
        """What tells it from other calls, as text: all but the count."""
        values = {**self.arguments, **{f">{name}": value for name, value in self.results.items()}}
        return " ".join([self.function, *(f"{name}={as_text(value)}" for name, value in values.items())])


@dataclass(frozen=True)
class NetworkTrace:
    """What one training step of a network calls.

    Attributes:
        name: of the network.
        calls: those that functions serve, sorted.
        not_mapped: operators of PyTorch that no function serves, with the number of their calls.
    """

    name: str
    calls: tuple[TracedCall, ...]
    not_mapped: Mapping[str, int] = field(default_factory=dict)

    @property
    def functions(self) -> Mapping[str, int]:
        """The functions it calls, with the number of calls."""
        counts: dict[str, int] = {}
        for call in self.calls:
            counts[call.function] = counts.get(call.function, 0) + call.count
        return counts


def as_text(value: Any) -> str:
    """An argument or result as text."""
    if isinstance(value, list | tuple):
        return "(" + ",".join(map(as_text, value)) + ")"
    return "null" if value is None else str(value)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(",") if number)
