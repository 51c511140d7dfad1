"""The format in which calls, and the records of calls, are sent between processes: JSON documents and blocks of bytes.

`docs/isolation.md` describes the format, which does not depend on Python. A call contains the arguments of a case, and
the element type, shape and layout of each result, but no expected values. A record contains only what was observed. Its
reader adds the prototype, the case and the expected results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_proto.interface import lookup
from diopi_proto.parameters import Role
from diopi_proto.types import Dtype
from diopi_test.cases.case import CaseClass
from diopi_test.execution.call_record import Bytes, CallRecord, GeneratorRecord, TensorRecord, ValueRecord
from diopi_test.oracle.records import BaselineCase, BaselineTensor, Expected, SharedStorage
from lib_rt.dtypes import from_numpy, to_numpy
from lib_rt.errors import GuardError

Document = dict[str, Any]
"""A JSON document that refers to a block by its index among the blocks of the message."""

Blocks = Sequence[Bytes]
"""The blocks of a message: the contents of tensors and storages."""


class CallFormatError(ValueError):
    """A document that does not have the documented format, or a record that lacks a result of its call."""


@final
class CallEncoder:
    """An encoder of calls and records.

    Args:
        has_expected_values: Whether calls also contain the expected values, for test vendors that return them.

    Attributes:
        blocks: the blocks of the message, in order.
    """

    def __init__(self, *, has_expected_values: bool = False) -> None:
        self.blocks: list[Bytes] = []
        self._has_expected_values = has_expected_values

    def call(self, case: BaselineCase) -> Document:
        """Return the document of a call: the arguments, and the element type, shape and layout of each result."""
        document = {
            "function": case.function,
            "label": case.label,
            "dtype": case.dtype.name,
            "class": case.case_class.value,
            "arguments": {name: self._argument(value) for name, value in case.arguments.items()},
            "results": {name: self._result(value) for name, value in case.expected.items()},
            "aliases": dict(case.aliases),
        }
        if (overlap := case.overlap) is not None:
            document["overlap"] = asdict(overlap)
        return document

    def record(self, run: CallRecord) -> Document:
        """Return the document of a record."""
        document: Document = {
            "tensors": [self._tensor(record) for record in run.tensors],
            "values": {value.name: _number(value.actual) for value in run.values},
            "missing": list(run.missing),
            "damage": encode_damage(run.damage),
            "generators": [[state.name, list(state.before), list(state.after)] for state in run.generators],
        }
        if run.again is not None:
            document["again"] = self.record(run.again)
        if run.other_draws:
            document["other_draws"] = {name: self.record(draw) for name, draw in run.other_draws.items()}
        return document

    def _block(self, array: NDArray[Any]) -> int:
        """Add a block and return its number."""
        self.blocks.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        return len(self.blocks) - 1

    def _array(self, array: NDArray[Any]) -> Document:
        """Return the document of an array: its block, element type and shape."""
        return {"block": self._block(array), "type": from_numpy(array.dtype).name, "shape": list(array.shape)}

    def _argument(self, value: Any) -> Any:
        """Return the document of an argument."""
        if isinstance(value, BaselineTensor):
            return {**self._array(value.values), "dtype": value.dtype.name, "layout": value.layout}
        if isinstance(value, list):
            return {"list": [self._argument(entry) for entry in value]}
        return list(value) if isinstance(value, tuple) else value

    def _result(self, value: Expected | list[Expected] | None) -> Any:
        """Return the document of a result, or of an array of results: element type, shape and layout."""
        if isinstance(value, list):
            return {"list": [self._result(entry) for entry in value]}
        if value is None:
            return None
        document: Document = {
            "shape": list(value.values.shape),
            "dtype": value.dtype.name,
            "layout": value.layout,
            "needs_validator": value.needs_validator,
        }
        if self._has_expected_values:
            document["values"] = self._array(value.values)
        return document

    def _tensor(self, record: TensorRecord) -> Document:
        """Return the document of a tensor after the call, and of its storage before the call."""
        before = None if record.before is None else self._block(record.before)
        is_unchanged = record.before is not None and np.array_equal(record.before, record.after)
        return {
            "name": record.name,
            "role": record.role.name,
            "dtype": record.dtype.name,
            "shape": list(record.shape),
            "strides": list(record.strides),
            "offset": record.offset,
            "is_result": record.expected is not None,
            "before": before,
            "after": before if is_unchanged else self._block(record.after),
        }


def _number(value: Any) -> Any:
    """Return the document of a number that a call has returned; a NumPy scalar becomes its type and value."""
    if isinstance(value, np.generic):
        return {"type": from_numpy(value.dtype).name, "value": value.item()}
    return value


def encode_damage(damage: Iterable[GuardError]) -> list[list[Any]]:
    """Return the document of damaged guard zones: offset and text of each."""
    return [[error.offset, str(error)] for error in damage]


def decode_damage(document: Iterable[Sequence[Any]]) -> list[GuardError]:
    """Return the damaged guard zones of a document."""
    return [GuardError(int(offset), str(text)) for offset, text in document]


@final
class CallDecoder:
    """A decoder of calls and records.

    Args:
        blocks: The blocks of the message.
    """

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks

    def call(self, document: Document) -> BaselineCase:
        """Return the case of a call. Expected values that the document does not contain are zeros."""
        overlap = document.get("overlap")
        return BaselineCase(
            function=document["function"],
            label=document["label"],
            dtype=Dtype[document["dtype"]],
            arguments={name: self._argument(value) for name, value in document["arguments"].items()},
            expected={name: self._result(value) for name, value in document["results"].items()},
            case_class=CaseClass(document["class"]),
            aliases=document["aliases"],
            overlap=None if overlap is None else SharedStorage(**overlap),
        )

    def record(self, document: Document, case: BaselineCase) -> CallRecord:
        """Return the record of a call of a case; raise CallFormatError if it is damaged or lacks a result."""
        expected = dict(_iterate_expected(case))
        try:
            run = self._record(document, case, expected)
        except (KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
            raise CallFormatError(f"the record of a call is damaged: {type(error).__name__}: {error}") from error
        if case.case_class is not CaseClass.negative:  # an invalid call may lack the tensor of a result
            _require_results(run, expected)
        return run

    def _record(self, document: Document, case: BaselineCase, expected: Mapping[str, Expected]) -> CallRecord:
        """Return the record of a call, without a check for missing results.

        Args:
            document: the JSON document of the record.
            case: the case that made the call.
            expected: the expected results by name.

        Returns:
            The record.
        """
        repetition = document.get("again")
        return CallRecord(
            prototype=lookup(case.function),
            case=case,
            tensors=[self._tensor(tensor, expected) for tensor in document["tensors"]],
            values=[
                ValueRecord(
                    name=name,
                    actual=_decode_number(value),
                    expected=expected[name],
                    before=case.arguments.get(name),
                )
                for name, value in document["values"].items()
            ],
            missing={name: expected[name] for name in document["missing"]},
            damage=decode_damage(document["damage"]),
            generators=[
                GeneratorRecord(name, (before[0], before[1]), (after[0], after[1]))
                for name, before, after in document["generators"]
            ],
            again=None if repetition is None else self.record(repetition, case),
            other_draws={name: self.record(draw, case) for name, draw in document.get("other_draws", {}).items()},
        )

    def _tensor(self, document: Document, expected: Mapping[str, Expected]) -> TensorRecord:
        """Return the record of a tensor from its JSON document; `expected` contains the expected results by name."""
        name, before = document["name"], document["before"]
        return TensorRecord(
            name=name,
            role=Role[document["role"]],
            dtype=Dtype[document["dtype"]],
            shape=tuple(map(int, document["shape"])),
            strides=tuple(map(int, document["strides"])),
            offset=int(document["offset"]),
            before=None if before is None else self._blocks[before],
            after=self._blocks[document["after"]],
            expected=expected[name] if document["is_result"] else None,
        )

    def _array(self, document: Document) -> NDArray[Any]:
        """Return an array from its block."""
        return self._blocks[document["block"]].view(to_numpy(Dtype[document["type"]])).reshape(document["shape"])

    def _argument(self, value: Any) -> Any:
        """Return an argument."""
        if isinstance(value, dict):
            if "list" in value:
                return [self._argument(entry) for entry in value["list"]]
            return BaselineTensor(self._array(value), Dtype[value["dtype"]], value["layout"])
        return tuple(value) if isinstance(value, list) else value

    def _result(self, value: Any) -> Any:
        """Return an expected result, or an array of results."""
        if value is None:
            return None
        if "list" in value:
            return [self._result(entry) for entry in value["list"]]
        has_values = "values" in value
        return Expected(
            values=self._array(value["values"]) if has_values else np.broadcast_to(0.0, value["shape"]),
            dtype=Dtype[value["dtype"]],
            layout=value["layout"],
            needs_validator=value["needs_validator"],
        )


def _decode_number(value: Any) -> Any:
    """Return the number in a document of `_number`."""
    return to_numpy(Dtype[value["type"]]).type(value["value"]) if isinstance(value, dict) else value


def _iterate_expected(case: BaselineCase) -> Iterable[tuple[str, Expected]]:
    """Yield the expected results of a case by name, with `.number` for an entry of an array of results."""
    for name, value in case.expected.items():
        entries = {f"{name}.{i}": entry for i, entry in enumerate(value)} if isinstance(value, list) else {name: value}
        for entry_name, entry in entries.items():
            if entry is not None:
                yield entry_name, entry


def _require_results(run: CallRecord, expected: Iterable[str]) -> None:
    """Raise CallFormatError unless the record has every result. Results that share a tensor are recorded once."""
    aliases = run.case.aliases
    results = [record.name for record, _ in run.results()]
    present = {aliases.get(name, name) for name in (*results, *(value.name for value in run.values), *run.missing)}
    absent = [name for name in expected if aliases.get(name, name) not in present]
    if absent:
        raise CallFormatError(f"the record of a call of {run.case.id} lacks the result {absent[0]}")
