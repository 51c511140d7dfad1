"""Classes that declare enumerations, structures, other types and functions of C; `hgrt` and `nvdla` list instances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Self, final


class Enumeration(IntEnum):
    """An enumeration of C; each member has a value and a meaning."""

    meaning: str

    def __new__(cls, value: int, meaning: str) -> Self:
        """Create a member with a value and a meaning."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    @classmethod
    def find(cls, value: int) -> Self | None:
        """Return the member with this value, or None if there is none."""
        return next((member for member in cls if member == value), None)


@final
@dataclass(frozen=True)
class EnumDeclaration:
    """The declaration of an enumeration in C.

    Attributes:
        name: the name of the C type.
        prefix: the prefix of the members' names in C.
        members: the enumeration; its docstring is the documentation of the type.
        is_project_defined: whether this project decides its names or numbers because the public description does not.
    """

    name: str
    prefix: str
    members: type[Enumeration]
    is_project_defined: bool = True

    @property
    def doc(self) -> str:
        """The documentation of the type."""
        return self.members.__doc__ or ""


@final
@dataclass(frozen=True)
class NumericMacro:
    """A macro whose value is a number."""

    name: str
    value: int
    doc: str
    is_project_defined: bool = True


@final
@dataclass(frozen=True)
class Typedef:
    """The declaration of a type alias or an opaque pointer; `declared` is the C text after `typedef`."""

    declared: str
    doc: str
    is_project_defined: bool = False


@final
@dataclass(frozen=True)
class StructField:
    """A field of a structure of C.

    Attributes:
        declared: the declaration in C.
        doc: the meaning.
    """

    declared: str
    doc: str


@final
@dataclass(frozen=True)
class StructDeclaration:
    """A structure of C, with its fields in order."""

    name: str
    doc: str
    fields: Sequence[StructField]
    is_project_defined: bool = False


@final
@dataclass(frozen=True)
class CParameter:
    """A parameter of a function: its type and name in C."""

    type: str
    name: str


@final
@dataclass(frozen=True)
class FunctionDeclaration:
    """A function of C or a method of a C++ class.

    Attributes:
        name: the name of the function.
        declared: the parameters as in C; empty if there are none.
        doc: the meaning and the errors.
        returns: the type of its result.
        is_project_defined: whether this project decides its name or parameters because the public description does not.
        is_constant: whether it is a method that does not change its object.
    """

    name: str
    declared: str
    doc: str
    returns: str = "hgResult"
    is_project_defined: bool = False
    is_constant: bool = False

    @property
    def parameters(self) -> list[CParameter]:
        """The parameters in order, without the dots of variable arguments."""
        texts = [text.strip() for text in self.declared.split(",") if text.strip() not in ("", "...")]
        return [CParameter(text[: -len(name)].strip(), name) for text in texts for name in [_last_word(text)]]


def _last_word(text: str) -> str:
    """Return the last word of a declaration, which is the declared name."""
    return text.replace("*", " ").split()[-1]


Declaration = EnumDeclaration | NumericMacro | Typedef | StructDeclaration | FunctionDeclaration
"""A declaration of a header."""
