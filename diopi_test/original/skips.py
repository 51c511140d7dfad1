"""Translate the skips of a vendor's `device_configs.py` to waivers for the cases of the same entries.

As in the original suite, an entry of `device_configs.py` concerns the entry of the same name in the case configuration,
and no other case.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from diopi_impl.base import matches
from diopi_proto.types import Dtype
from diopi_test.cases.selection import select_cases
from diopi_test.original.device import DeviceEntry, SkipKind, SkipRule
from diopi_test.original.entries import ConfigEntry, TensorArguments
from diopi_test.original.names import meanings
from diopi_test.original.translate import NotTranslated, escape_label


@final
@dataclass(frozen=True)
class ImportedWaiver:
    """A waiver that was derived from a skip.

    Attributes:
        pattern: The ID of a case, or a pattern that matches the IDs of several.
        reason: Where the skip is stated, for readers of the waiver.
    """

    pattern: str
    reason: str

    @property
    def toml(self) -> str:
        """The entry in a file of waivers."""
        return f"[[waiver]]\npattern = {json.dumps(self.pattern)}\nreason = {json.dumps(self.reason)}\n"


@final
@dataclass(frozen=True, kw_only=True)
class ImportedCase:
    """A translated case, with the properties that skips compare.

    Attributes:
        id: The ID of the case.
        entry: The entry of the case configuration.
        function: The original name of the function.
        number: The number of the case in the entry, from 0.
        dtypes: The element types of the tensors, by original name.
    """

    id: str
    entry: ConfigEntry
    function: str
    number: int
    dtypes: Mapping[str, Dtype]


@final
class ImportedCases:
    """The translated cases that skips can apply to.

    Attributes:
        entries: The names of the entries of the case configurations, with or without cases.
    """

    def __init__(self, cases: Iterable[ImportedCase], entries: Collection[str]) -> None:
        """Index cases by entry, and their IDs by function."""
        self.entries = entries
        self._by_entry: dict[str, list[ImportedCase]] = defaultdict(list)
        self._ids_by_function: dict[str, list[str]] = defaultdict(list)
        for case in cases:
            self._by_entry[case.entry.name].append(case)
            self._ids_by_function[_function_of(case.id)].append(case.id)

    def cases_of(self, device: DeviceEntry) -> list[ImportedCase]:
        """Return the cases that an entry of a vendor's configuration applies to."""
        names = device.functions
        return [case for case in self._by_entry.get(device.name, ()) if not names or case.function in names]

    def matching(self, pattern: str) -> list[str]:
        """Return the IDs of the imported cases that match a pattern for cases of one function."""
        return [id for id in self._ids_by_function[_function_of(pattern)] if matches(pattern, id)]


def waivers(file: str, device: DeviceEntry, imported: ImportedCases) -> Iterator[ImportedWaiver | NotTranslated]:
    """Yield waivers for the cases that an entry of a vendor's configuration skips.

    Args:
        file: The name of the vendor's configuration, for the reasons of the waivers.
        device: The entry.
        imported: What was translated from case configurations.

    Yields:
        At least one waiver for each skip; a record with the reason for a skip that applies to no case.
    """
    cases = imported.cases_of(device)
    for rule in device.skips:
        skipped = [case for case in cases if is_skipped(case, rule)]
        reason = f"{file}, line {rule.line}: {rule} in {device.name}"
        yield from (ImportedWaiver(pattern, reason) for pattern in _patterns(skipped, imported))
        if not skipped:
            yield NotTranslated(
                line=rule.line,
                subject=f"{device.name}: {rule}",
                reason=_explain_missing_cases(device, cases, imported.entries),
            )
    for problem in device.not_read:
        yield NotTranslated(line=problem.line, subject=device.name, reason=problem.reason)


def is_skipped(case: ImportedCase, rule: SkipRule) -> bool:
    """Return whether a rule skips a case of its entry."""
    if rule.kind is SkipKind.entry:
        return True
    if rule.kind is SkipKind.function:
        return bool(case.function == rule.value)
    if rule.kind is SkipKind.dtype and not rule.argument:
        return rule.value in case.dtypes.values()
    return any(_is_equal(value, rule.value) for value in _values(case, rule))


def _values(case: ImportedCase, rule: SkipRule) -> Iterator[Any]:
    """Yield the values of the argument that a rule names: an attribute, or the compared property of a tensor."""
    for name, values in case.entry.parameters.items():
        if rule.kind in (SkipKind.attribute, SkipKind.value) and _is_argument(case, name, rule.argument):
            yield values[case.number]
    for tensors in case.entry.tensors:
        for name in tensors.names:
            if _is_argument(case, name, rule.argument):
                yield from _values_of_tensor(case, tensors, name, rule.kind)


def _values_of_tensor(case: ImportedCase, tensors: TensorArguments, name: str, kind: SkipKind) -> Iterator[Any]:
    """Yield the property of a tensor that `kind` names; if `kind` is `attribute`, yield all its properties.

    Args:
        case: The case.
        tensors: The specification of the tensor in the entry.
        name: The original name of the tensor.
        kind: The property that a skip compares.
    """
    lists = {SkipKind.shape: tensors.shapes, SkipKind.stride: tensors.strides, SkipKind.value: tensors.values}
    for key, values in lists.items():
        if kind in (key, SkipKind.attribute) and values is not None and case.number < len(values):
            yield values[case.number]
    if kind in (SkipKind.dtype, SkipKind.attribute) and name in case.dtypes:
        yield case.dtypes[name]


def _is_argument(case: ImportedCase, name: str, rule_argument: str) -> bool:
    """Return whether an argument of an entry is the one that a rule names, possibly by a synonym."""
    if name == rule_argument:
        return True
    actual = {
        name_of_tensor for tensors in case.entry.tensors for name_of_tensor in tensors.names
    } | case.entry.parameters.keys()
    if rule_argument in actual:
        return False
    return any(
        meaning.parameter(name) == meaning.parameter(rule_argument) is not None for meaning in meanings(case.function)
    )


def _is_equal(first: Any, second: Any) -> bool:
    """Return whether two values of configurations are equal: a list equals a tuple, NaN equals NaN, True is not 1."""
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(_is_equal, first, second))
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    return bool(first == second) or (first != first and second != second)


def _patterns(skipped: Sequence[ImportedCase], imported: ImportedCases) -> Iterator[str]:
    """Yield patterns that match exactly the skipped cases: one for several cases if possible, else the IDs."""
    groups: dict[str, list[str]] = defaultdict(list)
    for case in skipped:
        dtype = case.id.partition("[")[2].partition("-")[0]
        groups[f"{_function_of(case.id)}[{dtype}-{escape_label(case.entry.name)}-*]"].append(case.id)
    for pattern, ids in groups.items():
        is_exact = len(ids) > 1 and len(ids) == len(imported.matching(pattern)) and not _matches_shipped_case(pattern)
        yield from [pattern] if is_exact else ids


def _matches_shipped_case(pattern: str) -> bool:
    """Return whether a pattern matches a case that ships with the suite."""
    function = _function_of(pattern)
    return any(matches(pattern, f"{function}[{case.label}]") for case in select_cases(function, "full"))


def _function_of(text: str) -> str:
    """Return the function of a case ID or of a pattern for cases of one function."""
    return text.partition("[")[0]


def _explain_missing_cases(device: DeviceEntry, cases: Sequence[ImportedCase], entries: Collection[str]) -> str:
    """Return the reason why a skip of the vendor's configuration applies to no translated case.

    Args:
        device: the entry of the vendor's configuration.
        cases: the translated cases of this entry.
        entries: the names of the entries of the case configuration.
    """
    if cases:
        return f"no translated case of {device.name} has it"
    if not entries:
        return "import the case configuration in the same command, so that its cases are known"
    if device.name not in entries:
        return f"the case configuration has no entry {device.name}"
    return f"no case of {device.name} is translated" + (
        f" for {', '.join(device.functions)}" if device.functions else ""
    )


def tolerance_notes(file: str, device: DeviceEntry, imported: ImportedCases) -> Iterator[str]:
    """Yield a note on what to do instead of the tolerances that an entry of a vendor's configuration sets.

    Args:
        file: The name of the vendor's configuration.
        device: The entry.
        imported: The cases that were translated from case configurations.

    Yields:
        The note, if the entry sets tolerances.
    """
    if not device.tolerances:
        return
    tolerances = ", ".join(f"{key}={value!r}" for key, value in device.tolerances.items())
    functions = sorted({_function_of(case.id) for case in imported.cases_of(device)})
    patterns = ", ".join(f"{function}[*-{escape_label(device.name)}-*]" for function in functions)
    yield (
        f"{file}:{device.line}: {device.name}: {tolerances}: not applied, because error budgets are derived. If a case "
        f"exceeds its budget for a reason you accept, add a waiver with max_ratio for {patterns or 'this case'}."
    )
