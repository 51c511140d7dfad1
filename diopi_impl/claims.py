"""Claims: what a vendor declares to support. The suite compares them with what works."""

from __future__ import annotations

import fnmatch
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from diopi_impl.errors import VendorError
from diopi_proto.interface import prototypes
from diopi_proto.types import Dtype

LAYOUTS = ("contiguous", "transposed", "channels_last", "strided", "expanded")
"""The layouts of tensors in the suite: row-major, column-major, axis 1 innermost, with gaps, with stride 0."""


@final
@dataclass(frozen=True)
class Claim:
    """The declaration that functions work for element types and layouts.

    Attributes:
        functions: a shell pattern for names of standard functions, such as `diopiConv*`.
        dtypes: the element types; None for all that the standard allows for each function.
        layouts: the layouts, out of `LAYOUTS`, that the tensors of a call may have; None for all.

    Raises:
        VendorError: if no standard function matches the pattern, or if a layout is unknown.
    """

    functions: str
    dtypes: Collection[Dtype] | None = None
    layouts: Collection[str] | None = None

    def __post_init__(self) -> None:
        """Check that a function matches the pattern and that the layouts are known."""
        if not fnmatch.filter(prototypes(), self.functions):
            raise VendorError(f"a claim names {self.functions!r}, which matches no standard function")
        if unknown := set(self.layouts or ()) - set(LAYOUTS):
            raise VendorError(
                f"a claim for {self.functions!r} has the layout {min(unknown)!r}, expected one of {', '.join(LAYOUTS)}"
            )

    def covers(self, function: str, dtype: Dtype, layouts: Collection[str]) -> bool:
        """Return whether the claim says that `function` works for `dtype` and tensors in these layouts."""
        return (
            fnmatch.fnmatchcase(function, self.functions)
            and (self.dtypes is None or dtype in self.dtypes)
            and (self.layouts is None or set(layouts) <= set(self.layouts))
        )

    @classmethod
    def from_json(cls, table: Mapping[str, Any]) -> Claim:
        """Return the claim with the attributes in `table`; raise KeyError or TypeError if they are invalid."""
        dtypes = table.get("dtypes")
        return cls(**{**table, "dtypes": None if dtypes is None else tuple(Dtype[name] for name in dtypes)})


def read_claims(path: Path) -> tuple[Claim, ...]:
    """Return the claims in a TOML file; none if the file does not exist.

    Args:
        path: a file of tables `[[claim]]` with the attributes of `Claim`.

    Returns:
        The claims in the order of the file.

    Raises:
        VendorError: if the file is invalid; the message names the file and the error.
    """
    if not path.exists():
        return ()
    try:
        content = tomllib.loads(path.read_text("utf-8"))
        if unexpected := set(content) - {"claim"}:
            raise VendorError(f"expected tables [[claim]], found {min(unexpected)!r}")
        return tuple(map(Claim.from_json, content["claim"]))
    except (OSError, ValueError, TypeError, KeyError, VendorError) as error:
        reason = f"{error} is missing or unknown" if isinstance(error, KeyError) else error
        raise VendorError(f"claims {path}: {reason}") from error
