"""Error budgets of cases for the arithmetic that a vendor declares, and a cache of these budgets on disk.

The stored budgets are those of IEEE 754 arithmetic. A vendor can declare deviations from it, such as a narrower type of
the factors of products. When a case runs, the change of each result that the declared arithmetic permits is derived,
and its budget grows by this change. The changes are cached in one file per case, in a folder per declaration and
baseline file. A file starts with the SHA-256 of its content. A damaged or unreadable file is computed again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, final

import numpy as np

from diopi_impl.numerics.declaration import Numerics
from diopi_proto.interface import lookup
from diopi_test.baseline.compaction import argument_digest
from diopi_test.baseline.dependencies import source_digest
from diopi_test.baseline.errors import BaselineError
from diopi_test.baseline.files import read_regular_file, write_atomically
from diopi_test.baseline.location import cache_folder
from diopi_test.oracle.arithmetic.change import Change
from diopi_test.oracle.arithmetic.declared_case import apply_changes, declare_checks, find_deviations, measure_case
from diopi_test.oracle.records import BaselineCase

MAX_FILE_BYTES = 512 * 2**20
"""The maximum number of bytes of a file of the cache."""

DIGEST_BYTES = 32
"""The number of bytes of the digest at the start of a file."""


@final
class DeclaredCases:
    """A source of cases whose error budgets permit a declared arithmetic, with a cache on disk."""

    def __init__(self, numerics: Numerics, folder: Path | None = None) -> None:
        """Prepare the derivation.

        Args:
            numerics: The declared arithmetic.
            folder: The folder of the cache; None for the user's cache.
        """
        self._numerics = numerics
        self._folder = (folder or cache_folder().parent / "declared") / numerics.digest

    def derive(self, case: BaselineCase, file_digest: str) -> BaselineCase:
        """Return a case with the budgets of the declared arithmetic.

        Args:
            case: The case, as stored or derived from a stored case.
            file_digest: The digest of the baseline file of the case, which is part of the cache key.

        Returns:
            The case with wider budgets, and with the declarations that validators and other checks of results need.
        """
        case = declare_checks(case, self._numerics)
        if not find_deviations(case, self._numerics):
            return case
        path = self._folder / file_digest / f"{_case_digest(case)}.npz"
        changes = _read_changes(path)
        if changes is None:
            changes = measure_case(case, self._numerics) or ()
            _write_changes(path, changes)
        return apply_changes(case, changes) if changes else case


def _case_digest(case: BaselineCase) -> str:
    """Return a digest of a case with its arguments, and of the sources that derive the changes of its results."""
    sources = _source_digest(lookup(case.function).family)
    parts = [case.id, case.dtype.name, argument_digest(case.arguments), sources]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@cache
def _source_digest(family: str) -> str:
    """Return a digest of the sources of a family's references and of the declared arithmetics."""
    return source_digest((f"diopi_test.oracle.reference.{family}", "diopi_test.oracle.arithmetic.declared_case"))


def _write_changes(path: Path, changes: Sequence[Change]) -> None:
    """Write changes to a file of the cache; do nothing if it can't be written, because the cache is not needed."""
    arrays: dict[str, Any] = {f"size{i}": change.size for i, change in enumerate(changes)}
    arrays |= {f"differs{i}": change.differs for i, change in enumerate(changes)}
    content = BytesIO()
    np.savez_compressed(content, **arrays)
    digest = hashlib.sha256(content.getvalue()).digest()
    try:
        write_atomically(path, digest + content.getvalue())
    except BaselineError:
        return


def _read_changes(path: Path) -> Sequence[Change] | None:
    """Return the changes in a file; None if the file is missing or damaged."""
    try:
        content = read_regular_file(path, MAX_FILE_BYTES)
    except BaselineError:
        return None
    digest, body = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        return None
    with np.load(BytesIO(body), allow_pickle=False) as arrays:
        count = len(arrays.files) // 2
        return [Change(arrays[f"size{i}"], arrays[f"differs{i}"]) for i in range(count)]
