"""Detect the interfaces of a library from its symbols."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from diopi_engine.conformance.all_cases import CASES as HGRT_CASES
from diopi_engine.conformance.models.names import AS_ENGINES, BY_OPERATORS
from diopi_engine.conformance.nvdla.all_cases import CASES as NVDLA_CASES
from diopi_engine.conformance.nvdla.client import CREATE, UNTAGGED_CREATE

CASES: Mapping[str, Sequence[str]] = {
    "hgEngineCreate": [*HGRT_CASES, *BY_OPERATORS, *AS_ENGINES],
    CREATE: [*NVDLA_CASES],
}
"""The names of the cases of each interface, by a symbol that all libraries with the interface export."""


class NoInterfaceError(Exception):
    """The library has no known interface or can't be loaded; the message states the reason."""


def find_cases(library: Path) -> list[str]:
    """Return the names of the cases for the interfaces of a library.

    A separate process loads the library and looks for the symbols in `CASES`.

    Args:
        library: the path of the library.

    Returns:
        The names in the order in which the cases run.

    Raises:
        NoInterfaceError: if the library can't be loaded, or if it exports none of these symbols.
    """
    symbols = [*CASES, UNTAGGED_CREATE]
    command = [sys.executable, "-I", str(Path(__file__).with_name("symbols.py")), str(library.resolve()), *symbols]
    process = subprocess.run(command, capture_output=True, text=True)
    if process.returncode:
        raise NoInterfaceError(f"{library} can't be loaded: {process.stderr.strip() or f'status {process.returncode}'}")
    exported = json.loads(process.stdout)
    interfaces = [symbol for symbol in exported if symbol in CASES]
    if not interfaces and UNTAGGED_CREATE in exported:
        raise NoInterfaceError(
            f"{library} has the interface of the released NVDLA headers, or was built with an older nvdla.h; the cases "
            "call the methods of the published document: build the library with the nvdla.h of this version"
        )
    if not interfaces:
        raise NoInterfaceError(f"{library} has no known interface: it exports none of {', '.join(CASES)}")
    return [name for symbol in interfaces for name in CASES[symbol]]
