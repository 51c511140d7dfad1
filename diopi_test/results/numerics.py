"""The declared arithmetic of a run, as logs and reports contain it, and how texts name it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from diopi_impl import IEEE, Numerics, NumericsError

DIGITS = 8
"""The number of digits of a digest in texts for people."""


@final
@dataclass(frozen=True)
class NumericsInfo:
    """The arithmetic for which the results of a run were evaluated.

    Attributes:
        declaration: the declaration.
        digest: the SHA-256 of the declared arithmetic, without the name and the sources of the declaration.

    Raises:
        NumericsError: if the digest is not that of the declaration.
    """

    declaration: Numerics
    digest: str

    def __post_init__(self) -> None:
        if self.digest != self.declaration.digest:
            raise NumericsError(f"the digest of the numerics is {self.declaration.digest}, found {self.digest!r}")

    @classmethod
    def from_declaration(cls, declaration: Numerics) -> NumericsInfo:
        """Return a declaration with its digest."""
        return cls(declaration, declaration.digest)

    @property
    def title(self) -> str:
        """Return the name, followed by the beginning of the digest unless the arithmetic is IEEE 754."""
        name = self.declaration.name
        return name if self.declaration.is_ieee else f"{name} ({self.digest[:DIGITS]})"

    @property
    def qualifier(self) -> str:
        """Return " with numerics tf32", which follows each statement of conformance; empty for IEEE 754 arithmetic."""
        return "" if self.declaration.is_ieee else f" with numerics {self.declaration.name}"


IEEE_INFO = NumericsInfo.from_declaration(IEEE)
"""The arithmetic of runs whose log or report does not contain a declaration."""
