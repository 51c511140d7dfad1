"""`BaseVendor`: the interface of vendors, whether they are written in Python or compiled libraries."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, final

from diopi_impl.claims import Claim
from diopi_impl.numerics import IEEE, Numerics
from diopi_impl.numerics.reading import check_name
from diopi_impl.program import FunctionProgram, RunProgram
from diopi_proto.types import Error
from lib_rt import Context, Device

TEXT_QUERIES = ("diopiGetVendorName", "diopiGetImplVersion", "diopiGetLastErrorString")
"""The functions of the standard that return a text. The base class implements them for every vendor in Python."""


@final
@dataclass
class Box:
    """A container for a result that the call creates.

    Attributes:
        value: a tensor of the context, or a number; None before the call.
    """

    value: Any = None


@final
@dataclass(frozen=True)
class Waiver:
    """Cases that are known to fail, with the permitted verdict and the reason.

    Attributes:
        pattern: a pattern for case IDs, such as `diopiErfinv[float16-*`. `*` matches any text and `?` any character;
            all other characters, brackets included, match themselves.
        reason: why the cases fail, for a person to read.
        verdict: the permitted verdict, such as `crashed`; `failed` if neither `verdict` nor `max_ratio` is set.
        max_ratio: the largest permitted ratio of error to budget; no other check may fail.
        link: a page with more information.
        expires: the last day on which the waiver applies; None if it does not expire.
        cause: the ID of a cause in a report; if it is not empty, the waiver applies only to cases with this cause.
        case: the ID of a case that has this cause. Only a run that executes this case can show that the waiver is not
            needed any more.
    """

    pattern: str
    reason: str
    _: KW_ONLY
    verdict: str | None = None
    max_ratio: float | None = None
    link: str = ""
    expires: date | None = None
    cause: str = field(default="", metadata={"omit_default": True})
    case: str = field(default="", metadata={"omit_default": True})

    def matches(self, case_id: str) -> bool:
        """Return whether the waiver applies to the case."""
        return matches(self.pattern, case_id)


def matches(pattern: str, text: str) -> bool:
    """Return whether the pattern of a waiver matches the whole text."""
    return _expression(pattern).fullmatch(text) is not None


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a waiver pattern."""
    wildcards = {"*": ".*", "?": "."}
    return re.compile("".join(wildcards.get(character) or re.escape(character) for character in pattern), re.DOTALL)


@final
@dataclass(frozen=True, kw_only=True)
class OperatorOverride:
    """An operator of the vendor's framework for which a library has registered a kernel.

    Attributes:
        operator: the name of the operator, such as `aten::add.Tensor`.
        source: where the library registered the kernel, such as `my_kernels.py:17`.
    """

    operator: str
    source: str


@final
@dataclass(frozen=True, kw_only=True)
class OperatorUse:
    """An operator of the vendor's framework that a call ran.

    Attributes:
        function: the standard function that was called.
        operator: the name of the operator.
        source: where a library registered the kernel that served the operator; empty if the framework served it.
    """

    function: str
    operator: str
    source: str = field(default="", metadata={"omit_default": True})


class BaseVendor(ABC):
    """A set of operator implementations on one kind of device.

    Args:
        name, version: the vendor's name and version, as reports show them.
        waivers: the known failures.
        claims: what the vendor declares to support; without claims it declares nothing.
        numerics: the arithmetic that the vendor declares; IEEE 754 arithmetic by default.
        calls_torch: whether the vendor may call PyTorch. If so, the vendor's PyTorch device excludes itself from
            PyTorch's dispatch during each call.

    Raises:
        NumericsError: if the declared arithmetic has the name of a declaration that ships with another arithmetic.
    """

    def __init__(
        self,
        name: str,
        version: str,
        *,
        waivers: Sequence[Waiver] = (),
        claims: Sequence[Claim] = (),
        numerics: Numerics = IEEE,
        calls_torch: bool = True,
    ) -> None:
        self.name = name
        self.version = version
        self.waivers = tuple(waivers)
        self.claims = tuple(claims)
        check_name(numerics, f"vendor {name}")
        self.numerics = numerics
        self.calls_torch = calls_torch

    @property
    def source_modules(self) -> Mapping[str, str]:
        """The name of the Python module that implements each function; empty if the vendor is not written in Python."""
        return {}

    @property
    def device_runtime(self) -> Path | None:
        """The path of a library with the vendor's device runtime (`diopi_proto.device_runtime`); None if it has none.

        The PyTorch device then uses this runtime, and the collectives of the same library if it has collectives.
        """
        return None

    @property
    def overrides(self) -> Sequence[OperatorOverride]:
        """The operators of the vendor's framework that a library overrides on the device; empty without a library."""
        return ()

    def take_operator_uses(self) -> Sequence[OperatorUse]:
        """Return the operators of the framework that calls ran and that were not returned before.

        By default, a vendor observes no operators.
        """
        return ()

    def store_programs(self, folder: Path, since: float) -> None:  # noqa: B027  # vendors that store nothing do not override it
        """Let the vendor store what it compiles in a folder, and load it from there in later processes.

        By default, a vendor stores nothing. A vendor must never load what it compiled from other sources.

        Args:
            folder: a folder of this vendor; it may be missing.
            since: a time before the process imported its first module of this project, as `time.time` returns it. If a
                source has changed since then, the process may have imported its previous content.
        """

    def can_compile(self, name: str) -> bool:
        """Return whether programs for `compile_program` may call the function `name`; by default, none may."""
        return False

    def reads_arguments(self, name: str) -> bool:
        """Return whether the host reads the tensors of a function before the call.

        Programs pass only their inputs and constants to such a function. By default, there are none.
        """
        return False

    def compile_program(self, program: FunctionProgram) -> RunProgram:
        """Compile a sequence of calls of functions for which `can_compile` is true.

        Args:
            program: the calls.

        Returns:
            A function of the arrays of the inputs, in host memory, that returns the arrays of the outputs.

        Raises:
            NotImplementedError: if the vendor compiles no programs.
        """
        raise NotImplementedError(f"{self.name} compiles no programs")

    @abstractmethod
    def has(self, name: str) -> bool:
        """Return whether the vendor implements the standard function `name`."""

    @abstractmethod
    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        """Call the standard function `name` and return its error code; `last_error` returns the reason of an error.

        No error of the operator is raised as an exception.

        Args:
            name: the standard function.
            context: the context to run in.
            arguments: the arguments in the order of the prototype. Tensors are `lib_rt.Tensor`, generators
                `lib_rt.Generator`, scalars `diopi_proto.types.Scalar`, sizes tuples, and arrays lists. None stands for
                NULL, an empty `Box` for a result that the callee creates (a list of boxes for `NewOuts`), and a `Box`
                with a number for a size that the callee may change.

        Returns:
            The error code.
        """

    @abstractmethod
    def last_error(self) -> str:
        """Return the message of this thread's latest failed call."""

    def query(self, name: str) -> str:
        """Return the text that the text query `name` returns; raise KeyError if there is no such query."""
        return dict(zip(TEXT_QUERIES, (self.name, self.version, self.last_error()), strict=True))[name]

    @abstractmethod
    def open_device(self) -> Device:
        """Open and return a device with the vendor's runtime functions; the caller closes it."""
