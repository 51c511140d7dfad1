"""`Selection`: which cases or functions a command selects, and the options that select them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from diopi_proto.families import families
from diopi_proto.interface import prototypes
from diopi_proto.messages import describe_unknown, pluralize, suggest
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.baseline.shuffle import sample_functions, shuffle_by_seed
from diopi_test.cases.case import CaseClass
from diopi_test.execution.runtime_cases import RUNTIME
from diopi_test.results.pooling import is_pooled
from diopi_test.run.collection import Collected
from diopi_test.run.keywords import PREFIX, Keywords, SelectionError

if TYPE_CHECKING:
    from diopi_test.run.affected import AffectedCases

T = TypeVar("T")

EXCLUSION_PREFIX = "no-"
"""The prefix of a name that is excluded."""

NOT_FAILED = frozenset({"passed", "waived", "not_implemented", "unsupported"})
"""The verdicts of cases that need not be run again. Cases with any other verdict failed, or their result is unknown."""


@dataclass(frozen=True)
class FailedCases:
    """The cases that failed or have no verdict in the report of an earlier run.

    Attributes:
        report: the path of the report.
        ids: the IDs of the cases.
    """

    report: Path
    ids: frozenset[str]

    @classmethod
    def read(cls, report: Path) -> FailedCases:
        """Return the failed cases of a report of `diopi-test run --json`; raise SelectionError for other files."""
        try:
            cases = json.loads(report.read_text("utf-8"))["cases"]
            return cls(report, frozenset(case["id"] for case in cases if case["verdict"] not in NOT_FAILED))
        except OSError as error:
            raise SelectionError(f"{report} can't be read: {error.strerror}") from error
        except (ValueError, LookupError, TypeError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise SelectionError(f"{report} is no report of `diopi-test run --json`: {reason}") from error


@dataclass(frozen=True)
class Shard:
    """One of several parts of about equal size, such as `2/8`. Raises SelectionError for an invalid number.

    Attributes:
        number: the number of the part; the first part has the number 1.
        count: the number of parts.
    """

    number: int
    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            raise SelectionError(f"there is no shard {self}: expected I/N with 1 ≤ I ≤ N")

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Return the shard that a text such as `2/8` names, the second of eight; raise SelectionError otherwise."""
        number, _, count = text.partition("/")
        if not (number.isdecimal() and count.isdecimal()):
            raise SelectionError(f"{text!r} is no shard: expected I/N, 2/8 for the second of eight")
        return cls(int(number), int(count))

    def part(self, items: Sequence[T], size: Callable[[T], int] = lambda item: 1) -> list[T]:
        """Return the items of this part, in order.

        The items are laid end to end, and the total length is divided into equal parts. An item belongs to the part
        that contains the middle of the item.

        Args:
            items: All items.
            size: Returns the size of an item; by default, all sizes are equal.
        """
        sizes = [size(item) for item in items]
        part, preceding_size, total = [], 0, sum(sizes)
        for item, item_size in zip(items, sizes, strict=True):
            if (2 * preceding_size + item_size) * self.count // (2 * total or 1) == self.number - 1:
                part.append(item)
            preceding_size += item_size
        return part


@dataclass(frozen=True, kw_only=True)
class Selection:
    """A selection of cases: a case is selected if every field allows it. Raises SelectionError for unknown names.

    Attributes:
        functions, families, dtypes, classes: the allowed names; names with the prefix `no-` are excluded. A case
            without an element type (negative tests, the runtime) is not affected by excluded types.
        expression: a keyword expression that the case ID must match.
        cases: the allowed case IDs. The ID of a record of pooled errors allows all cases of its function.
        failed: the cases of an earlier run that failed or have no verdict; only these are allowed, unless it is None.
        affected: the cases that a change can affect; only these are allowed, unless it is None.
        seed: the seed of the order of the cases; None for the order of the files.
        sample: the number of functions that are drawn at random, each with its derived forms; None for all. The cases
            of the runtime are always included.
        shard: the part of the remaining cases to run; None for all.
    """

    functions: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    expression: str | None = None
    cases: tuple[str, ...] = ()
    failed: FailedCases | None = None
    affected: AffectedCases | None = None
    seed: int | None = None
    sample: int | None = None
    shard: Shard | None = None

    def __post_init__(self) -> None:
        check_names("--function", "functions", self.functions, lambda: [RUNTIME, *prototypes()])
        check_names("--family", "families", self.families, families)
        check_names("--dtype", "element types", self.dtypes, lambda: list(Dtype.__members__))
        check_names("--class", "classes", self.classes, lambda: list(CaseClass.__members__))
        of_cases = [case.partition("[")[0] for case in self.cases]
        check_names("--case", "functions", of_cases, lambda: [RUNTIME, *prototypes()])
        if self.sample is not None and self.seed is None:
            raise SelectionError("--sample goes with --shuffle, whose seed it is drawn from")
        self._keywords  # noqa: B018 - understanding them is the check

    def wants_function(self, name: str) -> bool:
        """Return whether cases of `name`, a standard function or `RUNTIME`, may be selected."""
        has_keywords = self._keywords is None or self._keywords.may_match(name)
        is_affected = self.affected is None or self.affected.wants_function(name)
        has_ids = self._ids is None or name in self._functions_of_ids
        return self._has_names_of(name) and has_keywords and is_affected and has_ids

    def wants(self, case: Collected) -> bool:
        """Return whether a case is selected, before sampling and sharding."""
        return (
            self._has_names_of(case.function)
            and is_named(case.dtype, self.dtypes)
            and is_named(case.case_class, self.classes)
            and (self._ids is None or case.id in self._ids or case.function in self._pooled_functions)
            and (self.affected is None or self.affected.wants(case.function, case.id))
            and (self._keywords is None or self._keywords.match(case.id))
        )

    def wants_prototype(self, prototype: Prototype) -> bool:
        """Return whether a function has a selected name and accepts a selected element type."""
        dtypes = [dtype.name for dtype in prototype.dtypes] or [""]
        return self._has_names_of(prototype.name) and any(is_named(name, self.dtypes) for name in dtypes)

    def apply(self, cases: Iterable[Collected]) -> list[Collected]:
        """Return the selected cases: filtered, sampled, shuffled, then reduced to the shard."""
        chosen = [case for case in cases if self.wants(case)]
        sampled = self._draw({case.function for case in chosen})
        ordered = shuffle_by_seed(
            (case for case in chosen if case.function in sampled), self.seed, lambda case: case.id
        )
        return self.shard.part(ordered) if self.shard else ordered

    def apply_to_functions(self, names: Sequence[str], size: Callable[[str], int] = lambda name: 1) -> list[str]:
        """Return the selected functions among `names` that have cases; the expression must match the name.

        Args:
            names: The names to select from.
            size: Returns the number of cases of a function, for shards of equal size. It is called only for functions
                that the other criteria select, because counting the cases of all functions takes ten seconds.

        Returns:
            The selected names; empty only if the shard is empty.

        Raises:
            SelectionError: No function is selected.
        """
        has_keywords = self._keywords.match if self._keywords else bool
        chosen = [name for name in names if self._has_names_of(name) and has_keywords(name) and size(name)]
        if not chosen:
            number = pluralize(len(names), "function")
            raise SelectionError(f"{self.describe()} matches none of {number}.{self.suggest_similar(names)}")
        sampled = self._draw(set(chosen))
        ordered = shuffle_by_seed((name for name in chosen if name in sampled), self.seed)
        return self.shard.part(ordered, size) if self.shard else ordered

    def absent(self, cases: Iterable[Collected]) -> list[str]:
        """Return the IDs of `cases` and `failed` in this selection that do not exist, sorted.

        Args:
            cases: All cases.
        """
        requested = (name for name in self._ids or () if not is_pooled(name))
        return sorted(set(requested) - {case.id for case in cases})

    def words(self) -> list[str]:
        """Return the command-line words of this selection, such as `["--family", "pool", "--shuffle", "3"]`."""
        return [word for pair in self._options() for word in pair]

    def describe(self) -> str:
        """Return the command-line options of this selection as one text for messages, with quoted values."""
        return " ".join(f"{option} {value!r}" for option, value in self._options())

    def suggest_similar(self, functions: Iterable[str], cases: Iterable[Collected] = ()) -> str:
        """Return " Did you mean 'a' or 'b'?" with similar names of functions and IDs of cases, or an empty string.

        Args:
            functions: the names of all functions.
            cases: the cases of the functions that `wants_function` accepts.
        """
        requested = (*(self._keywords.words if self._keywords else ()), *self.cases)
        function_names, ids = list(functions), [case.id for case in cases]
        similar = dict.fromkeys(name for word in requested for name in _find_similar(word, function_names, ids))
        return suggest(list(similar))

    def explain_empty(self, functions: Iterable[str], cases: Iterable[Collected]) -> str:
        """Return the message that no case is selected, with similar names from the arguments of `suggest_similar`."""
        if self.failed is not None and not self.failed.ids:
            return f"nothing is left to repeat: no case failed in {self.failed.report}, and none is without a verdict"
        if self.affected is not None and self.affected.ids is not None and not self.affected.ids:
            return f"nothing is left to repeat, and every case has a verdict: {self.affected.reason}"
        requested = self.describe()
        return (
            f"no case matches {requested}.{self.suggest_similar(functions, cases)}"
            if requested
            else "there are no cases"
        )

    def _options(self) -> list[tuple[str, str]]:
        """Return the command-line options of this selection, each with its value."""
        named = (
            ("--function", self.functions),
            ("--family", self.families),
            ("--dtype", self.dtypes),
            ("--class", self.classes),
        )
        report = self.failed and str(self.failed.report)
        single = (("--failed-in", report), ("--shuffle", self.seed), ("--sample", self.sample), ("--shard", self.shard))
        return [
            *((option, value) for option, values in named for value in values),
            *([("-k", self.expression)] if self.expression else ()),
            *(("--case", case) for case in self.cases),
            *(self.affected.options if self.affected else ()),
            *((option, str(value)) for option, value in single if value is not None),
        ]

    def _has_names_of(self, function: str) -> bool:
        """Return whether the fields `functions` and `families` allow a function."""
        family = prototypes()[function].family if self.families and function in prototypes() else ""
        return is_named(function, self.functions) and is_named(family, self.families)

    def _draw(self, functions: set[str]) -> set[str]:
        """Return a random sample of the functions, or all of them if no sample was requested."""
        if self.sample is None or self.seed is None:
            return functions
        return {RUNTIME} | sample_functions(functions - {RUNTIME}, self.sample, self.seed)

    @cached_property
    def _keywords(self) -> Keywords | None:
        """The parsed expression of option `-k`; None without the option."""
        return Keywords(self.expression) if self.expression and self.expression.strip() else None

    @cached_property
    def _ids(self) -> frozenset[str] | None:
        """Return the allowed case IDs; None if every ID is allowed."""
        sets = [frozenset(self.cases)] * bool(self.cases) + ([self.failed.ids] if self.failed else [])
        return frozenset.intersection(*sets) if sets else None

    @cached_property
    def _pooled_functions(self) -> frozenset[str]:
        """Return the functions named by records of pooled errors, of which all cases are allowed."""
        return frozenset(name.partition("[")[0] for name in self._ids or () if is_pooled(name))

    @cached_property
    def _functions_of_ids(self) -> frozenset[str]:
        """Return the functions of the selected case IDs."""
        return frozenset(name.partition("[")[0] for name in self._ids or ())


def check_names(option: str, nouns: str, names: Iterable[str], known: Callable[[], Sequence[str]]) -> None:
    """Raise SelectionError, with similar names, if the value of an option is not a known name.

    Args:
        option: the option, which begins the message.
        nouns: what the names name, in the plural, such as "functions".
        names: the names, which may begin with `no-`.
        known: returns the known names.

    Raises:
        SelectionError: for the first name that is not known.
    """
    for name in (value.removeprefix(EXCLUSION_PREFIX) for value in names):
        if name not in known():
            similar = _find_similar(name, known(), ()) or get_close_matches(name, known())
            raise SelectionError(f"{option}: {describe_unknown(name, known(), nouns, similar)}")


def is_named(name: str, names: Sequence[str]) -> bool:
    """Return whether a list of names selects a name.

    Args:
        name: The name, such as `float16`.
        names: Names, and names to exclude with the prefix `no-`. If it contains only exclusions, all other names are
            selected; if it is empty, all names are.
    """
    included = [value for value in names if not value.startswith(EXCLUSION_PREFIX)]
    return f"{EXCLUSION_PREFIX}{name}" not in names and (not included or name in included)


def _find_similar(word: str, functions: Sequence[str], ids: Sequence[str]) -> list[str]:
    """Return functions with names similar to a word; for the ID of a case, similar IDs of its function."""
    function, bracket, _ = word.partition("[")
    if bracket and function in functions:
        return get_close_matches(word, [name for name in ids if name.startswith(f"{function}[")])
    plain = {name.lower().removeprefix(PREFIX): name for name in functions}
    return [plain[name] for name in get_close_matches(function.lower().removeprefix(PREFIX), plain, cutoff=0.75)]
