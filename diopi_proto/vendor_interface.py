"""Classes that declare the C++ interface between a framework and a vendor: enumerations, structures and functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

PROJECT_DEFINED = "Project-defined:"
"""The words before a rule that this project decides because the public description of the interface leaves it open."""


@final
@dataclass(frozen=True)
class VendorParameter:
    """A parameter of a function or a field of a structure.

    Attributes:
        type: its type in C++.
        name: its name.
        default: its default value in C++; empty if there is none.
    """

    type: str
    name: str
    default: str = ""


@final
@dataclass(frozen=True, kw_only=True)
class VendorEnum:
    """An `enum class` over int32.

    Attributes:
        name: its name in C++.
        members: the names and the meanings of its members, whose values count from 0.
        doc: its meaning.
    """

    name: str
    members: Sequence[tuple[str, str]]
    doc: str


@final
@dataclass(frozen=True, kw_only=True)
class VendorStruct:
    """A structure that the vendor fills.

    Attributes:
        name: its name in C++.
        fields: its fields in order.
        doc: its meaning.
    """

    name: str
    fields: Sequence[VendorParameter]
    doc: str


@final
@dataclass(frozen=True, kw_only=True)
class VendorFunction:
    """The prototype of a function that a vendor implements.

    Attributes:
        name: its name in C++.
        parameters: its parameters in order.
        returns: the type of its result.
        doc: what the function does.
        errors: what the function rejects, by an exception or by its status; empty if nothing.
        stream_order: how the function is ordered relative to the work of streams; empty if it does not concern them.
        threads: which threads may call the function; any thread unless stated otherwise.
        project_defined: which of these rules this project decides; empty if there are none.
        is_optional: whether a vendor may leave the function out.
        entry: its name in the C table, which differs from `name` for the second function of a name.
    """

    name: str
    doc: str
    parameters: Sequence[VendorParameter] = ()
    returns: str = "void"
    errors: str = ""
    stream_order: str = ""
    threads: str = "Any thread may call it at any time."
    project_defined: str = ""
    is_optional: bool = False
    entry: str = ""

    @property
    def table_entry(self) -> str:
        """The name of the function in the C table."""
        return self.entry or self.name

    @property
    def text(self) -> str:
        """The documentation with one paragraph per subject."""
        optional = "A vendor may leave the function out." if self.is_optional else ""
        paragraphs = {
            "": self.doc,
            "Errors: ": self.errors,
            "Order: ": self.stream_order,
            "Threads: ": self.threads,
            f"{PROJECT_DEFINED} ": self.project_defined,
            "Optional: ": optional,
        }
        return "\n".join(f"{title}{text}" for title, text in paragraphs.items() if text)


def parse_parameters(declared: str) -> tuple[VendorParameter, ...]:
    """Return the parameters of a declaration such as `deviceStream_t* stream, bool prior = false`."""
    return tuple(_parse_parameter(text.strip()) for text in declared.split(",") if text.strip())


def _parse_parameter(text: str) -> VendorParameter:
    """Return the parameter of a declaration such as `bool prior = false`."""
    declared, _, default = text.partition(" = ")
    type_name, _, name = declared.rpartition(" ")
    return VendorParameter(type_name, name, default)
