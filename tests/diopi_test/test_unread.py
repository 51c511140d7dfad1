"""Arguments that nobody reads: every entry speaks of some case, and the reference agrees."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest

from diopi_proto.interface import lookup, prototypes
from diopi_test.baseline import make_baseline_case
from diopi_test.case import TensorSpec
from diopi_test.cases import select_cases
from diopi_test.distrust import Examined
from diopi_test.unread import UNREAD, Unread

TRIED = 3
"""How many cases of a function an entry is tried with, and how many other values of an attribute."""


def _covered(entry: Unread, function: str, argument: str) -> Iterator[Examined]:
    """The cases of a function that an entry speaks of and where the argument might be another."""
    for case in select_cases(function, "full") if entry.is_about(function, argument) else ():
        if entry.when(case.arguments):
            one = Examined(case, make_baseline_case(lookup(function), case))
            assert entry.covers(one.made, argument)
            if one.is_examined and _others(one, argument):
                yield one


def _others(one: Examined, argument: str) -> list[Any]:
    """Values the argument might have instead: a tensor's turned round, an attribute's in other cases."""
    value = one.plain[argument]
    if isinstance(value, np.ndarray):
        return [np.flip(value), np.zeros_like(value), np.ones_like(value)]
    used = [case.arguments[argument] for case in select_cases(one.made.function, "full")]
    others = {repr(other): other for other in used if not isinstance(other, TensorSpec)}
    return [other for text, other in others.items() if text != repr(value)][:TRIED]


@pytest.mark.parametrize("entry", UNREAD, ids=lambda entry: f"{entry.functions}-{'-'.join(entry.arguments)}")
def test_nothing_depends_on_what_nobody_reads(entry: Unread) -> None:
    covered = {argument: 0 for argument in entry.arguments}
    for function, prototype in prototypes().items():
        for argument in {parameter.name for parameter in prototype.arguments} & set(entry.arguments):
            for one in islice(_covered(entry, function, argument), TRIED):
                told = [one.tells(**{argument: other}) for other in _others(one, argument)]
                assert not any(told), f"{one.made.id} depends on {argument}"
                covered[argument] += told.count(False)
    assert all(covered.values()), covered
