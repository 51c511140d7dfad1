"""The files of calls: one JSON file a network, a call a line, sorted, so that two versions compare well."""

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
from diopi_test.models.calls import Call, Model, ModelError, TracedTensor

FORMAT = 1
"""Of the files; one that is written otherwise has another."""

FOLDER = Path(__file__).parent
SUFFIX = ".json"

KEYS = {"format": int, "model": str, "calls": list, "not_mapped": dict}
CALL_KEYS = {"function": str, "count": int, "arguments": dict, "results": dict}


def model_names() -> Sequence[str]:
    """The names of the networks whose calls ship with the suite, sorted."""
    return sorted(path.stem for path in FOLDER.glob(f"*{SUFFIX}"))


@cache
def shipped(name: str) -> Model:
    """The calls of the network `name`; ModelError with the known names if there is none."""
    if name not in model_names():
        raise ModelError(describe_unknown(name, model_names(), "models"))
    return read_model(FOLDER / f"{name}{SUFFIX}")


def write_model(path: Path, model: Model) -> None:
    """Write a file of calls."""
    calls = ",\n".join(f"  {json.dumps(_to_json(call))}" for call in model.calls)
    head = f'{{\n "format": {FORMAT},\n "model": {json.dumps(model.name)},\n "calls": [\n{calls}\n ],\n'
    not_mapped = json.dumps(dict(sorted(model.not_mapped.items())), indent=1).replace("\n", "\n ")
    path.write_text(f'{head} "not_mapped": {not_mapped}\n}}\n', "utf-8")


def read_model(path: Path) -> Model:
    """Read a file of calls; ModelError that says what is wrong in it, and where."""
    try:
        read = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} can't be read as JSON: {error}") from error
    if isinstance(read, dict) and read.get("format", FORMAT) != FORMAT:
        raise ModelError(f"{path} has format {read['format']}, expected {FORMAT}: trace the model again")
    _check_keys(read, KEYS, str(path))
    calls = tuple(_call(entry, f"{path}, call {number}") for number, entry in enumerate(read["calls"], 1))
    for operator, count in read["not_mapped"].items():
        _check_count(count, f"{path}, not_mapped, {operator}")
    return Model(read["model"], calls, read["not_mapped"])


def _to_json(call: Call) -> Mapping[str, Any]:
    return {
        "function": call.function,
        "count": call.count,
        "arguments": {name: _value_to_json(value) for name, value in call.arguments.items()},
        "results": {name: _value_to_json(value) for name, value in call.results.items()},
    }


def _value_to_json(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_value_to_json(entry) for entry in value]
    if isinstance(value, TracedTensor) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return value


def _check_keys(value: Any, keys: Mapping[str, type], where: str) -> None:
    if type(value) is not dict:
        raise ModelError(f"{where}: expected an object, found {value!r}")
    for what, names in (("unknown", value.keys() - keys.keys()), ("missing", keys.keys() - value.keys())):
        if names:
            raise ModelError(f"{where}: {what} {', '.join(sorted(names))}")
    for name, kind in keys.items():
        if type(value[name]) is not kind:
            raise ModelError(f"{where}: {name} is {value[name]!r}, expected {kind.__name__}")


def _check_count(count: Any, where: str) -> None:
    if type(count) is not int or count < 1:
        raise ModelError(f"{where}: the number of calls is {count!r}, expected 1 or more")


def _call(value: Any, where: str) -> Call:
    _check_keys(value, CALL_KEYS, where)
    _check_count(value["count"], where)
    if value["function"] not in prototypes():
        raise ModelError(f"{where}: {value['function']!r} is not a function of the standard")
    prototype = prototypes()[value["function"]]
    where = f"{where}, {prototype.name}"
    names = [parameter.name for parameter in prototype.arguments]
    if list(value["arguments"]) != names:
        raise ModelError(f"{where}: arguments are {list(value['arguments'])}, expected {names}")
    arguments = {p.name: _argument(p, value["arguments"][p.name], f"{where}, {p.name}") for p in prototype.arguments}
    return Call(prototype.name, arguments, _results(prototype, value["results"], where), value["count"])


def _results(prototype: Prototype, value: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    names = {parameter.name for parameter in prototype.results}
    if unknown := sorted(value.keys() - names):
        raise ModelError(f"{where}: {', '.join(unknown)} is no result of it, those are {', '.join(sorted(names))}")
    return {name: _tensors(entry, f"{where}, {name}") for name, entry in value.items()}


def _tensors(value: Any, where: str) -> Any:
    """A tensor, a list of tensors, or None, which may be in the list, too."""
    if isinstance(value, list):
        return [_tensors(entry, where) for entry in value]
    if value is not None and type(value) is not str:
        raise ModelError(f"{where}: expected a tensor such as float32[2,3], found {value!r}")
    return None if value is None else TracedTensor.of(value, where)


def _argument(parameter: Parameter, value: Any, where: str) -> Any:
    if parameter.is_tensor or parameter.is_tensor_array:
        if (type(value) is list) is not parameter.is_tensor_array and value is not None:
            raise ModelError(f"{where}: expected {'a list of tensors' if parameter.is_tensor_array else 'a tensor'}")
        found = _tensors(value, where)
    else:
        found = None if value is None else _attribute(parameter, value, where)
    if found is None and not parameter.optional:
        raise ModelError(f"{where}: it is left out, which this argument can't be")
    return found


def _attribute(parameter: Parameter, value: Any, where: str) -> Any:
    for kind, (allowed, described) in _ATTRIBUTES.items():
        if issubclass(parameter.annotation, kind):
            number = float(value) if allowed is not str and value in ("inf", "-inf", "nan") else value
            if not _is_one(number, allowed):
                raise ModelError(f"{where}: expected {described}, found {value!r}")
            return tuple(number) if isinstance(number, list) else number
    raise ModelError(f"{where}: a call in a file can't have an argument of kind {parameter.annotation.__name__}")


def _is_one(value: Any, allowed: Any) -> bool:
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
"""By the kind of an attribute, what JSON has for it."""
