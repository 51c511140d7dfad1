"""Implementations in Python: they declare the parameters that they use, by the prototype's names and in any order."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import wraps
from operator import itemgetter
from typing import Any

from diopi_proto.messages import suggest


class ParameterError(ValueError):
    """An implementation declares a parameter that its prototype does not have."""


def accept_all(function: Callable[..., Any], name: str, parameters: Sequence[str]) -> Callable[..., Any]:
    """Return `function` as a function of all parameters, which passes on those that `function` declares.

    Args:
        function: an implementation that declares any of the parameters, and possibly a keyword-only parameter `out`.
        name: the name of the prototype, for messages.
        parameters: the names of the parameters in the prototype's order.

    Returns:
        A function of the parameters in the prototype's order, and of the same keyword `out`; `function` if it declares
        all parameters in this order.

    Raises:
        ParameterError: The function declares another parameter.
    """
    declared = declared_parameters(function, name, parameters)
    if declared == list(parameters):
        return function
    select = _selector([parameters.index(parameter) for parameter in declared])

    @wraps(function)
    def wrapper(*arguments: Any, **out: Any) -> Any:
        return function(*select(arguments), **out)

    return wrapper


def accept_all_by_name(function: Callable[..., Any], name: str, parameters: Sequence[str]) -> Callable[..., Any]:
    """Return `function` as a function of all parameters, as `accept_all` does; it also accepts them as keywords."""
    declared = declared_parameters(function, name, parameters)
    if declared == list(parameters):
        return function
    accepted, used_names = {*parameters, "out"}, {*declared, "out"}

    @wraps(function)
    def wrapper(*arguments: Any, **keywords: Any) -> Any:
        passed = dict(zip(parameters, arguments, strict=False)) | keywords
        if len(arguments) > len(parameters) or not accepted.issuperset(passed):
            raise TypeError(f"{name} takes ({', '.join(parameters)})")
        return function(**{key: value for key, value in passed.items() if key in used_names})

    return wrapper


def declared_parameters(function: Callable[..., Any], name: str, parameters: Sequence[str]) -> list[str]:
    """Return the parameters that an implementation declares, in its order and without `out`.

    Args:
        function: the implementation.
        name: the name of the prototype.
        parameters: the names of the prototype's parameters that the implementation may declare.

    Returns:
        The names of parameters.

    Raises:
        ParameterError: A parameter is none of these, or it has no name or can only be passed as a keyword.
    """
    declared = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name == "out":
            continue
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise ParameterError(
                f"{name}: the implementation declares {str(parameter)!r} as {parameter.kind.description}, "
                f"expected parameters by name, and only `out` as keyword-only; the prototype has ({_list(parameters)})"
            )
        if parameter.name not in parameters:
            raise ParameterError(
                f"{name}: the implementation declares {parameter.name!r}, the prototype has ({_list(parameters)})."
                f"{suggest(get_close_matches(parameter.name, parameters))}"
            )
        declared.append(parameter.name)
    return declared


def takes_out(function: Callable[..., Any]) -> bool:
    """Return whether `function` has the keyword-only parameter `out`."""
    parameter = inspect.signature(function).parameters.get("out")
    return parameter is not None and parameter.kind is parameter.KEYWORD_ONLY


def _selector(positions: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return a function that selects the items at these positions of a sequence."""
    first = positions[0] if positions else 0
    is_range = list(positions) == list(range(first, first + len(positions)))
    return itemgetter(slice(first, first + len(positions))) if is_range else itemgetter(*positions)


def _list(names: Sequence[str]) -> str:
    """Return the names, separated by commas."""
    return ", ".join(names)
