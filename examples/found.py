"""Reproduce the defects in software by others that docs/found.md lists.

    python examples/found.py                 # one line per defect
    python examples/found.py --markdown      # the tables of the page

The reproductions are in the package `defects`. Each needs only the library and NumPy, and those of FlagGems also
`flag_gems/flag_gems_cpu.py`. Defects of libraries that are not installed are listed as not tried. The exit status is 0
if all tried defects reproduce, and 1 if any does not, for example because it was repaired. Some defects are in
vectorized kernels, which a processor without AVX-512 may not use.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TRITON_INTERPRET", "1")

from defects.registry import DEFECTS, Library, format_result

for module in ("onnx_runtime", "jax_and_xla", "pytorch", "triton_interpreter", "flag_gems"):
    import_module(f"defects.{module}")  # which adds its defects to the list


def main(arguments: Sequence[str]) -> int:
    """Try all reproductions, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--markdown", action="store_true", help="print the tables of docs/found.md")
    options = parser.parse_args(arguments)
    if options.markdown:
        for library in dict.fromkeys(defect.library for defect in DEFECTS):
            print(table(library))
        return 0
    return print_lines()


def table(library: Library) -> str:
    """Return the defects of a library as a table in Markdown, with the results on this computer."""
    rows = ["| call | found | expected | definition | status |", "| --- | --- | --- | --- | --- |"]
    for defect in DEFECTS:
        if defect.library == library:
            actual = format_result(defect.compute()) if library.version else "not tried"
            cells = (defect.call, actual, format_result(defect.expected), defect.definition, defect.status)
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join([f"## {library.title}", "", f"Version {library.version}", "", *rows, ""])


def print_lines() -> int:
    """Print a line per defect, and return the exit status."""
    has_changed = False
    for defect in DEFECTS:
        version = defect.library.version
        if not version:
            print(
                f"{defect.library.title} · {defect.call} · not tried: install {' and '.join(defect.library.packages)}"
            )
            continue
        actual = defect.compute()
        verdict = "reproduces" if defect.reproduces(actual) else "DOES NOT REPRODUCE"
        has_changed |= not defect.reproduces(actual)
        values = f"found {format_result(actual)} · expected {format_result(defect.expected)}"
        print(f"{defect.library.title} {version} · {defect.call} · {values} · {verdict}")
    return int(has_changed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
