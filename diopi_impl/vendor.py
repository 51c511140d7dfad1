"""`Vendor`: a vendor in Python has nine runtime functions and a table of implementations of standard functions."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, final

from diopi_impl.access import ARRAYS
from diopi_impl.arguments import Prepare, add_argument_checks
from diopi_impl.base import TEXT_QUERIES, BaseVendor, Waiver
from diopi_impl.claims import Claim
from diopi_impl.errors import VendorError, error_code
from diopi_impl.functional import Adapted, Adapter, apply_directly, bind
from diopi_impl.numerics import IEEE, Numerics
from diopi_impl.results import TensorAccess
from diopi_proto.implementations import ParameterError, accept_all
from diopi_proto.interface import lookup, prototypes
from diopi_proto.parameters import Parameter
from diopi_proto.prototype import Prototype
from diopi_proto.types import Error
from lib_rt import Context, Device, RuntimeFunctions

Implementation = Callable[..., Error | None]
"""A raw implementation: takes parameters of the prototype and returns an error code (None means success).

`BaseVendor.call` describes the values. Arguments that the call does not read are None.
"""

F = TypeVar("F", bound=Callable[..., Any])
"""The type of a decorated implementation, which a decorator returns unchanged."""


class Vendor(BaseVendor):
    """A set of operator implementations in Python on one kind of device.

    Args:
        name, version: the vendor's name and version, as reports show them.
        runtime: the nine functions of the device.
        host_addressable: whether the host can read and write device memory directly.
        adapt: turns each functional implementation into a function of arrays, for example by compiling it.
        access: how functional implementations access tensors; by default, as NumPy arrays.
        waivers: the known failures.
        claims: what the vendor declares to support.
        numerics: the arithmetic that the vendor declares.
        calls_torch: whether an implementation may call PyTorch. If not, calls as a device of PyTorch take less time.
        store_programs: implements the method `store_programs`; by default, the vendor stores nothing.
    """

    def __init__(
        self,
        name: str,
        version: str,
        runtime: RuntimeFunctions,
        *,
        host_addressable: bool = False,
        adapt: Adapter = apply_directly,
        access: TensorAccess = ARRAYS,
        waivers: Sequence[Waiver] = (),
        claims: Sequence[Claim] = (),
        numerics: Numerics = IEEE,
        calls_torch: bool = True,
        store_programs: Callable[[Path, float], None] | None = None,
    ) -> None:
        super().__init__(name, version, waivers=waivers, claims=claims, numerics=numerics, calls_torch=calls_torch)
        self.runtime = runtime
        self.host_addressable = host_addressable
        self._adapt = adapt
        self._access = access
        self._store_programs = store_programs
        self._implementations: dict[str, Implementation] = {}
        self._derived: set[str] = set()
        self._functions: dict[str, Callable[..., Any]] = {}
        self._adapted: dict[str, Adapted] = {}
        self._failure = _FailureReason()

    def implements(self, *names: str, adapt: Adapter | None = None) -> Callable[[F], F]:
        """Register the decorated *functional* implementation of these functions and of their derived forms.

        The implementation declares the inputs and attributes of the prototype that it uses, by name and in any order.
        It receives their values (arrays, plain numbers, tuples) and returns the results in order. A keyword-only
        parameter `out` receives the `ResultSpec` of each result tensor. Arguments that a call does not read
        (`Prototype.unread_arguments`) are None.

        Args:
            names: the standard functions.
            adapt: the adapter for these functions; the vendor's adapter by default.

        Returns:
            A decorator that returns the implementation unchanged. It raises VendorError if there is no such prototype,
            if the prototype lacks one of the parameters, or if the function is already implemented.
        """

        def register(function: F) -> F:
            """Register a function under each name and return it unchanged."""
            for base in map(_prototype, names):
                adapted = (adapt or self._adapt)(base, _accept_all(function, base, base.arguments))
                self._register_forms(base, adapted, function)
            return function

        return register

    def implements_raw(self, name: str) -> Callable[[F], F]:
        """Register the decorated *raw* implementation of `name`: see `Implementation`.

        The implementation declares the parameters of the prototype that it uses, by name and in any order.

        Args:
            name: the standard function.

        Returns:
            A decorator that returns the implementation unchanged. It raises VendorError in the same cases as the
            decorator of `implements`.
        """

        def register(function: F) -> F:
            """Register a function and return it unchanged."""
            prototype = _prototype(name)
            accept = _accept_all(function, prototype, prototype.parameters)
            self._register(prototype, lambda values: lambda context, arguments: accept(context, *arguments), function)
            return function

        return register

    def _register_forms(self, base: Prototype, adapted: Adapted, function: Callable[..., Any]) -> None:
        """Register an implementation for a function and for its derived forms, for example the in-place form."""
        for form in _forms(base):
            if form is base or form.name not in self._implementations:
                self._adapted[form.name] = adapted
            if form is base:
                self._register(base, bind(form, adapted, self._access), function)
            elif form.name not in self._implementations:
                self._implementations[form.name] = add_argument_checks(form, bind(form, adapted, self._access))
                self._derived.add(form.name)
                self._functions[form.name] = function

    def _register(self, prototype: Prototype, prepare: Prepare, function: Callable[..., Any]) -> None:
        """Register an implementation; raise VendorError if the function is already implemented."""
        if prototype.name in self._implementations and prototype.name not in self._derived:
            raise VendorError(f"vendor {self.name}: {prototype.name} is implemented twice")
        self._derived.discard(prototype.name)
        self._implementations[prototype.name] = add_argument_checks(prototype, prepare)
        self._functions[prototype.name] = function

    @property
    def source_modules(self) -> Mapping[str, str]:
        """The name of the Python module that implements each function."""
        return {name: _module_of(function) for name, function in self._functions.items()}

    def function(self, name: str) -> Callable[..., Any]:
        """Return the implementation that was registered for `name`; raise KeyError if there is none."""
        return self._functions[name]

    def has(self, name: str) -> bool:
        """Return whether the vendor implements the standard function `name`."""
        return name in self._implementations or name in TEXT_QUERIES

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        """Call the standard function `name` and return its error code; see `BaseVendor.call`."""
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

    def store_programs(self, folder: Path, since: float) -> None:
        """Let the vendor store compiled programs; see `BaseVendor.store_programs`."""
        if self._store_programs is not None:
            self._store_programs(folder, since)

    def last_error(self) -> str:
        """Return the message of this thread's latest failed call."""
        return self._failure.text

    def open_device(self) -> Device:
        """Open and return a device with the vendor's runtime functions."""
        return Device(self.runtime, host_addressable=self.host_addressable)

    def __repr__(self) -> str:
        return f"<Vendor {self.name} {self.version}: {len(self._implementations)} functions>"


def _module_of(function: Callable[..., Any]) -> str:
    """Return the name of the module that defines a function, also if decorators or `partial` wrap the function.

    Args:
        function: An implementation. A `partial` may state its module, as functions do.

    Returns:
        The name; an empty string if the function is not written in Python.
    """
    wrapped = inspect.unwrap(function)
    while isinstance(wrapped, partial) and "__module__" not in vars(wrapped):
        wrapped = inspect.unwrap(wrapped.func)
    return "" if inspect.isbuiltin(wrapped) else getattr(wrapped, "__module__", "") or ""


@final
class _FailureReason(threading.local):
    """The reason of the latest failed call of each thread."""

    text = ""


def _prototype(name: str) -> Prototype:
    """Return the prototype of a function; raise VendorError if there is none."""
    try:
        return lookup(name)
    except KeyError as unknown:
        raise VendorError(unknown.args[0]) from None


def _forms(base: Prototype) -> Iterable[Prototype]:
    """Return the prototypes of the function and of its derived forms."""
    return (form for form in prototypes().values() if form.base == base.name)


def _accept_all(
    function: Callable[..., Any], prototype: Prototype, parameters: Sequence[Parameter]
) -> Callable[..., Any]:
    """Return an implementation as a function of all of these parameters; raise VendorError for an unknown parameter."""
    try:
        return accept_all(function, prototype.name, [p.name for p in parameters])
    except ParameterError as unknown:
        raise VendorError(str(unknown)) from None
