"""`BaseVendor`: what the suite sees of a vendor, whether it is written in Python or a compiled library."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any, final

from diopi_impl.claims import Claim
from diopi_proto.types import Error
from lib_rt import Context, Device

TEXT_QUERIES = ("diopiGetVendorName", "diopiGetImplVersion", "diopiGetLastErrorString")
"""The functions of the standard that answer with a text, which every vendor in Python has from the start."""


@final
@dataclass
class Box:
    """Where a call puts a value it makes itself: a tensor of the context, or a number."""

    value: Any = None


@final
@dataclass(frozen=True)
class Waiver:
    """Cases that are known not to pass, how they may end, and why.

    Attributes:
        pattern: for case ids, such as `diopiErfinv[float16-*`: `*` stands for any text, `?` for any character, all else
            for itself, brackets too.
        reason: what is wrong, for a person to read.
        verdict: what the cases may end in, such as `crashed`; `failed` if neither it nor `max_ratio` is given.
        max_ratio: up to which error / budget the values of the cases may be off; nothing else may be wrong.
        link: where more is told.
        expires: the last day it holds; None for no end.
    """

    pattern: str
    reason: str
    verdict: str | None = None
    max_ratio: float | None = None
    link: str = ""
    expires: date | None = None

    def matches(self, case_id: str) -> bool:
        """Whether the waiver is about this case."""
        return matches(self.pattern, case_id)


def matches(pattern: str, text: str) -> bool:
    """Whether `text` is what a waiver's pattern describes."""
    return _expression(pattern).fullmatch(text) is not None


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    wildcards = {"*": ".*", "?": "."}
    return re.compile("".join(wildcards.get(character) or re.escape(character) for character in pattern), re.DOTALL)


class BaseVendor(ABC):
    """A set of operator implementations on one kind of device.

    Args:
        name, version: as a report shows them.
        waivers: known failures.
        claims: what it declares that it supports; none means that it declares nothing.
        calls_torch: whether it may call PyTorch, which is told then that no operator of its own calls the vendor.
    """

    def __init__(
        self,
        name: str,
        version: str,
        *,
        waivers: Sequence[Waiver] = (),
        claims: Sequence[Claim] = (),
        calls_torch: bool = True,
    ) -> None:
        self.name = name
        self.version = version
        self.waivers = tuple(waivers)
        self.claims = tuple(claims)
        self.calls_torch = calls_torch

    @abstractmethod
    def has(self, name: str) -> bool:
        """Whether the vendor implements the standard function `name`."""

    @abstractmethod
    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        """Call the standard function `name` and return its error code; `last_error` says what went wrong.

        The arguments follow the prototype: tensors as `lib_rt.Tensor`, arrays of them as lists, generators as
        `lib_rt.Generator`, scalars as `diopi_proto.types.Scalar`, sizes as tuples, anything left out as None, what the
        callee makes as an empty `Box` (`NewOuts`: a list of them), a size it may write anew as a `Box` of that size.

        Raises nothing but what is not an error of the operator (KeyboardInterrupt, say).
        """

    @abstractmethod
    def last_error(self) -> str:
        """The message of the latest call of this thread that failed."""

    def query(self, name: str) -> str:
        """What the text query `name` answers; KeyError if the standard has none of that name."""
        return dict(zip(TEXT_QUERIES, (self.name, self.version, self.last_error()), strict=True))[name]

    @abstractmethod
    def open_device(self) -> Device:
        """A device with the vendor's runtime functions; the caller closes it."""
