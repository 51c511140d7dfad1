"""`Vendor`: a vendor in Python is nine runtime functions and a table from standard function to implementation."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, final

from diopi_impl.arguments import Prepare, checked
from diopi_impl.base import TEXT_QUERIES, BaseVendor, Waiver
from diopi_impl.claims import Claim
from diopi_impl.errors import VendorError, error_code
from diopi_impl.functional import Adapter, apply_directly, bind
from diopi_proto.interface import lookup, prototypes
from diopi_proto.prototype import Prototype
from diopi_proto.types import Error
from lib_rt import Context, Device, RuntimeFunctions

Implementation = Callable[..., Error | None]
"""A raw implementation: takes exactly the prototype's parameters and answers with an error code (None is success).

The values are those `BaseVendor.call` describes, None for arguments of which nothing is read in the call.
"""

F = TypeVar("F", bound=Callable[..., Any])


class Vendor(BaseVendor):
    """A set of operator implementations in Python on one kind of device.

    Args:
        name, version: as a report shows them.
        runtime: the nine functions of the device.
        host_addressable: whether device memory can be read and written by the host directly.
        adapt: turns each functional implementation into one on NumPy arrays (jit compilation, say).
        waivers: known failures.
        claims: what it declares that it supports.
        calls_torch: whether an implementation may call PyTorch; without, calls as a device of PyTorch take less time.
    """

    def __init__(
        self,
        name: str,
        version: str,
        runtime: RuntimeFunctions,
        *,
        host_addressable: bool = False,
        adapt: Adapter = apply_directly,
        waivers: Sequence[Waiver] = (),
        claims: Sequence[Claim] = (),
        calls_torch: bool = True,
    ) -> None:
        super().__init__(name, version, waivers=waivers, claims=claims, calls_torch=calls_torch)
        self.runtime = runtime
        self.host_addressable = host_addressable
        self._adapt = adapt
        self._implementations: dict[str, Implementation] = {}
        self._derived: set[str] = set()
        self._failure = _Failure()

    def implements(self, name: str, *, adapt: Adapter | None = None) -> Callable[[F], F]:
        """Register the decorated *functional* implementation of `name` and of the forms derived from it.

        It takes the values of the prototype's inputs and attributes, by their names and in their order (arrays,
        plain numbers, tuples), and returns the results in their order. A keyword-only parameter `out` receives the
        `ResultSpec` of each result tensor. An argument that a call does not read
        (`Prototype.unread_arguments`) is None, whatever the caller passed. `adapt` replaces the vendor's own adapter
        for this function.

        Raises VendorError when there is no such prototype, the parameters differ from it, or it is taken.
        """

        def register(function: F) -> F:
            base = _prototype(name)
            check_parameters(function, base, [p.name for p in base.arguments])
            adapted = (adapt or self._adapt)(base, function)
            for form in _forms(base):
                if form is base:
                    self._enter(base, bind(form, adapted))
                elif form.name not in self._implementations:
                    self._implementations[form.name] = checked(form, bind(form, adapted))
                    self._derived.add(form.name)
            return function

        return register

    def implements_raw(self, name: str) -> Callable[[F], F]:
        """Register the decorated *raw* implementation of `name`: see `Implementation`.

        Raises VendorError as `implements` does.
        """

        def register(function: F) -> F:
            prototype = _prototype(name)
            check_parameters(function, prototype, [p.name for p in prototype.parameters])
            self._enter(prototype, lambda values: lambda context, given: function(context, *given))
            return function

        return register

    def _enter(self, prototype: Prototype, prepare: Prepare) -> None:
        if prototype.name in self._implementations and prototype.name not in self._derived:
            raise VendorError(f"vendor {self.name}: {prototype.name} is implemented twice")
        self._derived.discard(prototype.name)
        self._implementations[prototype.name] = checked(prototype, prepare)

    def has(self, name: str) -> bool:
        return name in self._implementations or name in TEXT_QUERIES

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        implementation = self._implementations.get(name)
        if implementation is None:
            self._failure.text = f"{self.name} does not implement {name}"
            return Error.NoImplement
        try:
            code = implementation(context, *arguments)
            return Error.Success if code is None else Error(code)
        except Exception as error:
            self._failure.text = f"{name}: {str(error) or type(error).__name__}"
            return error_code(error)

    def last_error(self) -> str:
        return self._failure.text

    def open_device(self) -> Device:
        return Device(self.runtime, host_addressable=self.host_addressable)

    def __repr__(self) -> str:
        return f"<Vendor {self.name} {self.version}: {len(self._implementations)} functions>"


@final
class _Failure(threading.local):
    """Why the latest failing call of each thread failed."""

    text = ""


def _prototype(name: str) -> Prototype:
    try:
        return lookup(name)
    except KeyError as unknown:
        raise VendorError(unknown.args[0]) from None


def _forms(base: Prototype) -> Iterable[Prototype]:
    return (form for form in prototypes().values() if form.base == base.name)


def check_parameters(function: Callable[..., Any], prototype: Prototype, expected: Sequence[str]) -> None:
    """VendorError unless `function`'s positional parameters are exactly `expected`."""
    signature = inspect.signature(function)
    given = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    if given != list(expected):
        raise VendorError(
            f"{prototype.name}: the implementation takes ({', '.join(given)}), "
            f"the prototype says ({', '.join(expected)})"
        )
