"""Trace files: one JSON file per network with one call per line, sorted so that two versions are easy to compare."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from diopi_proto.interface import prototypes
from diopi_proto.messages import describe_unknown
from diopi_proto.parameters import Generator, Parameter, Scalar, Size, Text, boolean, c_int, f32, f64, i32, i64
from diopi_proto.prototype import Prototype
from diopi_proto.types import Reduction, RoundMode
from diopi_test.traces.calls import NetworkTrace, TracedCall, TracedTensor, TraceError

FORMAT = 1
"""Version of the layout of trace files."""

FOLDER = Path(__file__).parent
"""The folder of the traces that ship with the suite: this package."""

SUFFIX = ".json"
"""The suffix of a trace file."""

KEYS = {"format": int, "model": str, "calls": list, "not_mapped": dict}
"""The keys of a trace file's JSON object and the types of their values."""

CALL_KEYS = {"function": str, "count": int, "arguments": dict, "results": dict}
"""The keys of each call in a trace file and the types of their values."""


def model_names() -> Sequence[str]:
    """Return the names of the networks whose traces ship with the suite, sorted."""
    return sorted(path.stem for path in FOLDER.glob(f"*{SUFFIX}"))


@cache
def load_shipped_trace(name: str) -> NetworkTrace:
    """Return the shipped trace of a network; raise TraceError with the known names if there is none."""
    if name not in model_names():
        raise TraceError(describe_unknown(name, model_names(), "models"))
    return read_trace(FOLDER / f"{name}{SUFFIX}")


@cache
def shipped_calls(name: str) -> Mapping[str, Mapping[str, TracedCall]]:
    """Return the calls of a shipped network by function and label."""
    by_function: dict[str, dict[str, TracedCall]] = {}
    for call in load_shipped_trace(name).calls:
        by_function.setdefault(call.function, {})[call.label] = call
    return by_function


def write_trace(path: Path, model: NetworkTrace) -> None:
    """Write a trace file."""
    calls = ",\n".join(f"  {json.dumps(_call_to_json(call))}" for call in model.calls)
    head = f'{{\n "format": {FORMAT},\n "model": {json.dumps(model.name)},\n "calls": [\n{calls}\n ],\n'
    not_mapped = json.dumps(dict(sorted(model.not_mapped.items())), indent=1).replace("\n", "\n ")
    path.write_text(f'{head} "not_mapped": {not_mapped}\n}}\n', "utf-8")


def read_trace(path: Path) -> NetworkTrace:
    """Return the trace in a file; raise TraceError, which gives location and reason, if it is not valid."""
    try:
        read = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise TraceError(f"{path} can't be read as JSON: {error}") from error
    if isinstance(read, dict) and read.get("format", FORMAT) != FORMAT:
        raise TraceError(f"{path} has format {read['format']}, expected {FORMAT}: trace the model again")
    _check_keys(read, KEYS, str(path))
    calls = tuple(_parse_call(entry, f"{path}, call {number}") for number, entry in enumerate(read["calls"], 1))
    for operator, count in read["not_mapped"].items():
        _check_count(count, f"{path}, not_mapped, {operator}")
    return NetworkTrace(read["model"], calls, read["not_mapped"])


def _call_to_json(call: TracedCall) -> Mapping[str, Any]:
    """Return a call as a JSON object."""
    return {
        "function": call.function,
        "count": call.count,
        "arguments": {name: _value_to_json(value) for name, value in call.arguments.items()},
        "results": {name: _value_to_json(value) for name, value in call.results.items()},
    }


def _value_to_json(value: Any) -> Any:
    """Return an argument or result as JSON; tensors and non-finite numbers become text."""
    if isinstance(value, list | tuple):
        return [_value_to_json(entry) for entry in value]
    if isinstance(value, TracedTensor) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return value


def _check_keys(value: Any, keys: Mapping[str, type], location: str) -> None:
    """Raise TraceError unless the value is an object with exactly these keys and types."""
    if type(value) is not dict:
        raise TraceError(f"{location}: expected an object, found {value!r}")
    for problem, names in (("unknown", value.keys() - keys.keys()), ("missing", keys.keys() - value.keys())):
        if names:
            raise TraceError(f"{location}: {problem} {', '.join(sorted(names))}")
    for name, kind in keys.items():
        if type(value[name]) is not kind:
            raise TraceError(f"{location}: {name} is {value[name]!r}, expected {kind.__name__}")


def _check_count(count: Any, location: str) -> None:
    """Raise TraceError unless the count is an integer of at least 1."""
    if type(count) is not int or count < 1:
        raise TraceError(f"{location}: the number of calls is {count!r}, expected 1 or more")


def _parse_call(value: Any, location: str) -> TracedCall:
    """Return the call that a JSON object describes; raise TraceError if it is invalid."""
    _check_keys(value, CALL_KEYS, location)
    _check_count(value["count"], location)
    if value["function"] not in prototypes():
        raise TraceError(f"{location}: {value['function']!r} is not a function of the standard")
    prototype = prototypes()[value["function"]]
    location = f"{location}, {prototype.name}"
    names = [parameter.name for parameter in prototype.arguments]
    if list(value["arguments"]) != names:
        raise TraceError(f"{location}: arguments are {list(value['arguments'])}, expected {names}")
    arguments = {
        p.name: _parse_argument(p, value["arguments"][p.name], f"{location}, {p.name}") for p in prototype.arguments
    }
    return TracedCall(
        function=prototype.name,
        arguments=arguments,
        results=_parse_results(prototype, value["results"], location),
        count=value["count"],
    )


def _parse_results(prototype: Prototype, value: Mapping[str, Any], location: str) -> Mapping[str, Any]:
    """Return the results that a JSON object describes; raise TraceError for unknown names."""
    names = {parameter.name for parameter in prototype.results}
    if unknown := sorted(value.keys() - names):
        raise TraceError(
            f"{location}: {', '.join(unknown)} is not a result; the results are {', '.join(sorted(names))}"
        )
    return {name: _parse_tensors(entry, f"{location}, {name}") for name, entry in value.items()}


def _parse_tensors(value: Any, location: str) -> Any:
    """Return the tensor, None, or list of both that a JSON value describes; raise TraceError for other values."""
    if isinstance(value, list):
        return [_parse_tensors(entry, location) for entry in value]
    if value is not None and type(value) is not str:
        raise TraceError(f"{location}: expected a tensor such as float32[2,3], found {value!r}")
    return None if value is None else TracedTensor.parse(value, location)


def _parse_argument(parameter: Parameter, value: Any, location: str) -> Any:
    """Return an argument that a JSON value describes; raise TraceError if it does not match the parameter."""
    if parameter.is_tensor or parameter.is_tensor_array:
        if (type(value) is list) is not parameter.is_tensor_array and value is not None:
            raise TraceError(f"{location}: expected {'a list of tensors' if parameter.is_tensor_array else 'a tensor'}")
        parsed = _parse_tensors(value, location)
    else:
        parsed = None if value is None else _parse_attribute(parameter, value, location)
    if parsed is None and not parameter.optional:
        raise TraceError(f"{location}: the argument is null, expected a value because it is not optional")
    return parsed


def _parse_attribute(parameter: Parameter, value: Any, location: str) -> Any:
    """Return an attribute that a JSON value describes; raise TraceError if its type is wrong."""
    for kind, (allowed, described) in _ATTRIBUTES.items():
        if issubclass(parameter.annotation, kind):
            number = float(value) if allowed is not str and value in ("inf", "-inf", "nan") else value
            if not _is_allowed(number, allowed):
                raise TraceError(f"{location}: expected {described}, found {value!r}")
            return tuple(number) if isinstance(number, list) else number
    raise TraceError(
        f"{location}: the argument has type {parameter.annotation.__name__}, which trace files do not support"
    )


def _is_allowed(value: Any, allowed: Any) -> bool:
    """Return whether a JSON value is among the allowed values, or has one of the allowed types."""
    if isinstance(allowed, frozenset):
        return value in allowed
    if allowed is list:
        return type(value) is list and all(type(entry) is int for entry in value)
    return type(value) in (allowed if isinstance(allowed, tuple) else (allowed,))


_ATTRIBUTES: Mapping[Any, tuple[Any, str]] = {
    Size: (list, "a list of integers"),
    i64: (int, "an integer"),
    i32: (int, "an integer"),
    c_int: (int, "an integer"),
    Generator: (int, "a seed"),
    boolean: (bool, "true or false"),
    f64: ((int, float), "a number"),
    f32: ((int, float), "a number"),
    Scalar: ((bool, int, float), "a number"),
    Text: (str, "text"),
    Reduction: (frozenset(("none", "mean", "sum")), "none, mean or sum"),
    RoundMode: (frozenset(("none", "trunc", "floor")), "none, trunc or floor"),
}
"""For each type of attribute: the type, the types, or the set of the allowed JSON values, and their description."""
