"""The whole interface: which header declares which functions, and in which order.

The file `interface.txt` lists the functions in the order of the C headers: a line `[header]`, then one name per line.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from diopi_proto.families import load_families
from diopi_proto.prototype import Prototype, registered_prototypes


@cache
def header_order() -> Mapping[str, tuple[str, ...]]:
    """Return the names that each header declares, in order, by header."""
    order: dict[str, list[str]] = {}
    for line in files("diopi_proto").joinpath("interface.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            names = order.setdefault(line.strip("[]"), [])
        elif line:
            names.append(line)
    return {header: tuple(names) for header, names in order.items()}


@cache
def header_of(name: str) -> str:
    """Return the header that declares the function `name`; raise KeyError if no header does."""
    for header, names in header_order().items():
        if name in names:
            return header
    raise KeyError(f"{name} is in no header of the interface")


@cache
def prototypes() -> Mapping[str, Prototype]:
    """Return the prototypes of all operators by name, in header order."""
    load_families("diopi_proto.functions")
    registered = registered_prototypes()
    return {
        name: registered[name]
        for header, names in header_order().items()
        if header != "diopirt.h"
        for name in names
        if name in registered
    }


@cache
def runtime_prototypes() -> Mapping[str, Prototype]:
    """Return the prototypes of the functions of `diopirt.h` by name, in header order."""
    importlib.import_module("diopi_proto.runtime")
    return {name: registered_prototypes()[name] for name in header_order()["diopirt.h"]}


def lookup(name: str) -> Prototype:
    """Return the prototype of an operator.

    Args:
        name: the name of the operator. `runtime_prototypes` has the functions of `diopirt.h`.

    Returns:
        The prototype.

    Raises:
        KeyError: No operator has this name; the message suggests similar names.
    """
    try:
        return prototypes()[name]
    except KeyError:
        from diopi_proto.messages import describe_unknown

        raise KeyError(describe_unknown(name, prototypes(), "standard functions")) from None
