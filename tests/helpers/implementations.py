"""Call implementations of jax_cpu with all parameters of their prototypes."""

from collections.abc import Callable
from typing import Any

from diopi_impl.jax_cpu import vendor
from diopi_proto.implementations import accept_all_by_name
from diopi_proto.interface import prototypes


def with_all_parameters(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of all parameters that calls an implementation, which may declare only some of them."""
    name, prototype = next(
        (name, prototype)
        for name, prototype in prototypes().items()
        if prototype.form == "plain" and _is_registered(name) and vendor.function(name) is function
    )
    return accept_all_by_name(function, name, [parameter.name for parameter in prototype.arguments])


def _is_registered(name: str) -> bool:
    """Return whether the built-in vendor implements a function."""
    try:
        vendor.function(name)
    except KeyError:
        return False
    return True
