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
from diopi_engine.conformance.nvdla.client import CREATE

CASES: Mapping[str, Sequence[str]] = {
    "hgEngineCreate": [*HGRT_CASES, *BY_OPERATORS, *AS_ENGINES],
    CREATE: [*NVDLA_CASES],
}
"""The names of the cases of each interface, by a symbol that all libraries with the interface export."""


class NoInterfaceError(Exception):
    """The library has no known interface or can't be loaded; the message states the reason."""


def find_cases(library: Path) -> list[str]:
    """Return the names of the cases that apply to a library, by its symbols, which a separate process reads."""
    command = [sys.executable, "-I", str(Path(__file__).with_name("symbols.py")), str(library.resolve()), *CASES]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise NoInterfaceError(f"{library} can't be loaded: {done.stderr.strip() or f'status {done.returncode}'}")
    if not (found := json.loads(done.stdout)):
        raise NoInterfaceError(f"{library} has no interface that there are cases of: none of {', '.join(CASES)}")
    return [name for symbol in found for name in CASES[symbol]]
