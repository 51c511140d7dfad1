"""Write and read descriptions of cases. A described case is defined in a file instead of a module of this package.

The file `DATA/described/<function>.json` lists the cases of a function: shapes, element types, layouts, attributes, and
the domains of values. It contains no expected results: `diopi_test.baseline.on_demand` computes them when a run needs
them.

An argument is an attribute, or an object with one of three keys: `tensor`, the shape of a tensor with values from a
domain or of a computed result; `pending`, the rule of a `PendingTensor`; `list`, the tensors of an array. In a rule,
`renamed` has the names of arguments that differ between the forward function and the case. `given` has the arguments of
the forward function that the case does not have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any, final

import numpy as np

from diopi_proto.interface import lookup, prototypes
from diopi_proto.parameters import Parameter
from diopi_proto.types import Dtype
from diopi_test.baseline.errors import BaselineError
from diopi_test.baseline.files import read_regular_file
from diopi_test.baseline.named_domains import DescribedDomain
from diopi_test.cases.case import Case, CaseClass, ResultOf, ResultOverride, TensorSpec, check_cases
from diopi_test.cases.layouts import contiguous, layout_named

FOLDER = "described"
"""The folder with the descriptions, next to the folders of the levels."""

FORMAT_VERSION = 1
"""The version of the format of the files."""

MAX_FILE_BYTES = 256 * 2**20
"""The maximum size of a file in bytes."""


@final
@dataclass(frozen=True)
class PendingTensor:
    """A tensor argument of a backward function with the shape of the forward function's result, not yet computed.

    Attributes:
        rule: The forward function, and how its result is computed from the arguments of the case.
        domain: The domain of the values, for a gradient of the result; None if the values are the result itself.
    """

    rule: ResultOf
    domain: DescribedDomain | None = None


def description_file(data: Path, function: str) -> Path:
    """Return the path of the file that describes the cases of `function`."""
    return data / FOLDER / f"{function}.json"


def is_described(data: Path) -> bool:
    """Return whether the folder `data` describes its cases."""
    return (data / FOLDER).is_dir()


def generation_command(data: Path, level: str) -> str:
    """Return the arguments of diopi-test that generate the files of a level in `data`."""
    return f"run --data {data}" if is_described(data) else f"gen-data --level {level}"


def described_functions(data: Path) -> list[str]:
    """Return the functions whose cases the folder `data` describes, sorted.

    Raises:
        BaselineError: The name of a file is not the name of a standard function.
    """
    names = sorted(path.stem for path in (data / FOLDER).glob("*.json"))
    if unknown := [name for name in names if name not in prototypes()]:
        raise BaselineError(f"{data / FOLDER} describes {unknown[0]}, expected a function of the standard")
    return names


def described_cases(data: Path, function: str) -> Sequence[Case]:
    """Return the cases that the folder `data` describes for a function.

    Raises:
        BaselineError: The file is missing, too large or malformed.
    """
    path = description_file(data, function)
    return _read_descriptions(path, path.stat().st_mtime_ns if path.is_file() else 0)


@lru_cache(maxsize=4)
def _read_descriptions(path: Path, modified: int) -> Sequence[Case]:
    """Return the cases of a file. `modified`, the time of its last change, is only a part of the cache key."""
    content = read_regular_file(path, MAX_FILE_BYTES)
    try:
        record = json.loads(content)
        if record["format"] != FORMAT_VERSION or record["function"] != path.stem:
            raise ValueError(f"expected format {FORMAT_VERSION} and function {path.stem}")
        cases = tuple(case_from_record(path.stem, record) for record in record["cases"])
        check_cases(lookup(path.stem), cases)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise BaselineError(f"{path} does not describe cases: {type(error).__name__}: {error}") from error
    return cases


def case_line(case: Case) -> str:
    """Return the description of a case as one line of JSON."""
    return json.dumps(case_to_record(case), separators=(",", ":"))


def render_descriptions(function: str, lines: Sequence[str]) -> bytes:
    """Return the content of a file of descriptions.

    Args:
        function: The name of the function.
        lines: For each case, the result of `case_line`.

    Returns:
        The content in UTF-8.
    """
    text = ",\n".join(lines)
    return f'{{"format": {FORMAT_VERSION}, "function": {json.dumps(function)}, "cases": [\n{text}\n]}}\n'.encode()


def case_to_record(case: Case) -> dict[str, Any]:
    """Return the description of a case, in types that JSON can represent."""
    return {
        "label": case.label,
        "dtype": case.dtype.name,
        "class": case.case_class.value,
        "arguments": {name: _argument_to_record(value) for name, value in case.arguments.items()},
        "results": {name: _override_to_record(value) for name, value in case.results.items()},
    }


def case_from_record(function: str, record: Mapping[str, Any]) -> Case:
    """Return the case of a description; raise KeyError, TypeError or ValueError if the description is invalid."""
    parameters = {parameter.name: parameter for parameter in lookup(function).arguments}
    return Case(
        str(record["label"]),
        Dtype[record["dtype"]],
        {name: _argument_from_record(parameters.get(name), value) for name, value in record["arguments"].items()},
        results={name: _override_from_record(value) for name, value in record["results"].items()},
        case_class=CaseClass(record["class"]),
    )


def _argument_to_record(value: Any) -> Any:
    """Return the description of an argument, in types that JSON can represent."""
    match value:
        case TensorSpec():
            source = {"result": _rule_to_record(value.compute)} if isinstance(value.compute, ResultOf) else {}
            domain = {} if source else {"domain": value.domain.to_record()}  # type: ignore[attr-defined]  # described cases have no other domains
            layout = {} if value.layout is contiguous else {"layout": value.layout.__name__}
            return {"tensor": list(value.shape), "dtype": value.dtype.name, **layout, **domain, **source}
        case PendingTensor():
            domain = {} if value.domain is None else {"domain": value.domain.to_record()}
            return {"pending": _rule_to_record(value.rule), **domain}
        case list():
            return {"list": [_argument_to_record(entry) for entry in value]}
    return list(value) if isinstance(value, tuple) else value


def _argument_from_record(parameter: Parameter | None, value: Any) -> Any:
    """Return the argument that a JSON value describes."""
    match value:
        case {"tensor": shape, "dtype": dtype}:
            layout = layout_named(value["layout"]) if "layout" in value else contiguous
            if "result" in value:
                return TensorSpec(
                    _parse_sizes(shape), Dtype[dtype], layout=layout, compute=_rule_from_record(value["result"])
                )
            return TensorSpec(
                _parse_sizes(shape), Dtype[dtype], DescribedDomain.from_record(value["domain"]), layout=layout
            )
        case {"pending": rule}:
            return PendingTensor(
                _rule_from_record(rule), DescribedDomain.from_record(value["domain"]) if "domain" in value else None
            )
        case {"list": entries}:
            return [_argument_from_record(None, entry) for entry in entries]
    return _attribute_from_record(parameter, value)


def _attribute_from_record(parameter: Parameter | None, value: Any) -> Any:
    """Return an attribute from JSON: a list becomes a tuple, and a choice a member of the parameter's enumeration."""
    if isinstance(value, list):
        return tuple(value)
    kind: Any = parameter.annotation if parameter else object
    return kind(value) if value is not None and issubclass(kind, Enum) else value


def _parse_sizes(shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple; raise ValueError if an entry is not a size."""
    if not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"expected sizes, found {shape!r}")
    return tuple(shape)


def _rule_to_record(rule: ResultOf) -> dict[str, Any]:
    """Return the description of the rule by which a result is computed, in types that JSON can represent."""
    extra_arguments = {name: _argument_to_record(value) for name, value in rule.extra_arguments.items()}
    return {
        "function": rule.function,
        "result": rule.result,
        "renamed": dict(rule.argument_names),
        "given": extra_arguments,
    }


def _rule_from_record(record: Mapping[str, Any]) -> ResultOf:
    """Return the rule by which a result is computed, as a JSON object describes it."""
    parameters = {parameter.name: parameter for parameter in lookup(record["function"]).arguments}
    extra_arguments = {
        name: _argument_from_record(parameters.get(name), value) for name, value in record["given"].items()
    }
    return ResultOf(record["function"], record["result"], dict(record["renamed"]), extra_arguments=extra_arguments)


def _override_to_record(value: ResultOverride | None) -> Any:
    """Return the element type and shape that the caller requests of a result, for JSON; None for an omitted result."""
    if value is None:
        return None
    return {"dtype": value.dtype and value.dtype.name, "shape": value.shape and list(value.shape)} | (
        {"shape": []} if value.shape == () else {}
    )


def _override_from_record(record: Any) -> ResultOverride | None:
    """Return the element type and shape that the caller requests of a result; None for an omitted result."""
    if record is None:
        return None
    dtype, shape = record["dtype"], record["shape"]
    return ResultOverride(Dtype[dtype] if dtype else None, shape=None if shape is None else _parse_sizes(shape))


def resolve_shapes(function: str, case: Case) -> Case:
    """Return a case whose pending tensors are replaced by tensors with the shapes that the reference computes.

    Raises:
        ValueError: The reference of the forward function rejects the arguments.
    """
    from diopi_test.oracle.data import materialize, plain_values
    from diopi_test.oracle.evaluation import compute_result  # imports the references

    for name, value in case.arguments.items():
        if isinstance(value, PendingTensor):
            complete = {n: v for n, v in case.arguments.items() if not isinstance(v, PendingTensor)}
            values = plain_values(materialize(lookup(function), replace(case, arguments=complete), compute_result))
            array = np.asarray(compute_result(value.rule, values))
            case = replace(case, arguments={**case.arguments, name: _resolve_tensor(array, value, case.dtype)})
    return case


def _resolve_tensor(array: Any, pending: PendingTensor, dtype: Dtype) -> TensorSpec:
    """Return the specification of a pending tensor.

    Args:
        array: The result that the reference computed, which has the shape of the tensor.
        pending: The pending tensor.
        dtype: The element type of the case, which the tensor has unless it is a truth value or an integer.
    """
    if pending.domain is not None:
        return TensorSpec(array.shape, dtype, pending.domain)
    result_dtype = {"b": Dtype.bool, "i": Dtype.int64}.get(array.dtype.kind, dtype)
    return TensorSpec(array.shape, result_dtype, compute=pending.rule)
