"""Claims: what a vendor declares that it supports, for the suite to compare with what works."""

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
"""The layouts tensors of the suite have: row-major, column-major, axis 1 innermost, with gaps, with stride 0."""


@final
@dataclass(frozen=True)
class Claim:
    """That functions work for element types and layouts.

    Attributes:
        functions: a shell pattern for names of standard functions, such as `diopiConv*`.
        dtypes: the element types, None for all that the standard has for each function.
        layouts: the layouts, of `LAYOUTS`, that all tensors of a call may have; None for all.

    Raises VendorError for a pattern that no standard function matches, and for an unknown layout.
    """

    functions: str
    dtypes: Collection[Dtype] | None = None
    layouts: Collection[str] | None = None

    def __post_init__(self) -> None:
        if not fnmatch.filter(prototypes(), self.functions):
            raise VendorError(f"a claim is about {self.functions!r}, which matches no standard function")
        if unknown := set(self.layouts or ()) - set(LAYOUTS):
            raise VendorError(
                f"a claim about {self.functions!r} names the layout {min(unknown)!r}, known are {', '.join(LAYOUTS)}"
            )

    def covers(self, function: str, dtype: Dtype, layouts: Collection[str]) -> bool:
        """Whether it says that `function` works for `dtype` and tensors in these layouts."""
        return (
            fnmatch.fnmatchcase(function, self.functions)
            and (self.dtypes is None or dtype in self.dtypes)
            and (self.layouts is None or set(layouts) <= set(self.layouts))
        )

    @classmethod
    def from_json(cls, table: Mapping[str, Any]) -> Claim:
        """The claim of which `table` has the attributes; KeyError or TypeError if some are unknown or missing."""
        dtypes = table.get("dtypes")
        return cls(**{**table, "dtypes": None if dtypes is None else tuple(Dtype[name] for name in dtypes)})


def read_claims(path: Path) -> tuple[Claim, ...]:
    """The claims in a TOML file, each a table `[[claim]]` with the attributes of `Claim`; none if there is no file.

    Raises VendorError that names the file and what is wrong with it.
    """
    if not path.exists():
        return ()
    try:
        content = tomllib.loads(path.read_text("utf-8"))
        if strange := set(content) - {"claim"}:
            raise VendorError(f"expected tables [[claim]], found {min(strange)!r}")
        return tuple(map(Claim.from_json, content["claim"]))
    except (OSError, ValueError, TypeError, KeyError, VendorError) as error:
        reason = f"{error} is missing or unknown" if isinstance(error, KeyError) else error
        raise VendorError(f"claims {path}: {reason}") from error
