"""The file of known differences is well formed: each has a reason and concerns entries that exist."""

from __future__ import annotations

import re
from fnmatch import filter as matching_names

import pytest

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")
pytest.importorskip("expecttest", reason="pip install 'diopi[test]'")

from diopi_torch.conformance.known import KnownDifference, known_differences  # noqa: E402  # behind the checks
from diopi_torch.conformance.samples import CHANGES, DTYPES, ERRORS, SampleGroup, databases  # noqa: E402  # as above

GROUP = SampleGroup(database="op", entry="fft.fft", form="plain", dtype="int64")


def test_every_known_difference_is_well_formed() -> None:
    names = [name for entries in databases().values() for name in entries]
    for known in known_differences():
        assert known.reason
        assert [pattern for pattern in known.entries if not matching_names(names, pattern)] == []
        assert {*known.forms} <= {*CHANGES, ERRORS} and {*known.dtypes} <= {*DTYPES}
        re.compile(known.text)


@pytest.mark.parametrize(
    ("known", "explains"),
    [
        (KnownDifference(reason="x"), True),
        (KnownDifference(reason="x", entries=["fft.*"], forms=["plain"], dtypes=["int64"], text="dif+er"), True),
        (KnownDifference(reason="x", entries=["ifft.*"]), False),
        (KnownDifference(reason="x", forms=["error"]), False),
        (KnownDifference(reason="x", dtypes=["bool"]), False),
        (KnownDifference(reason="x", text="raises"), False),
    ],
)
def test_a_known_difference_explains_what_it_matches(known: KnownDifference, explains: bool) -> None:
    assert known.explains(GROUP, "values differ") is explains
