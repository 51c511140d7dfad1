"""The generated files of a source tree: C headers, golden interface, schemas, counts in the README, dependencies."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from diopi_impl import find_vendor
from diopi_proto import headers
from diopi_proto.interface import header_order, prototypes, runtime_prototypes
from diopi_proto.prototype import Prototype
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.reference import find_reference
from diopi_test.results.schema import render_schemas
from diopi_test.run.result_dependencies import FILE, render_dependencies

GOLDEN = "tests/diopi_proto/golden/interface.jsonl"
"""The file with the interface that released libraries rely on: one JSON record per function."""

README = "README.md"
"""The file whose counts of functions and cases are generated."""

DEPENDENCIES = f"diopi_test/run/{FILE}"
"""The file that lists the functions whose results are arguments in cases of other functions."""

SCHEMAS = "diopi_test/results"
"""The folder of the JSON Schemas of reports."""


def refresh(tree: Path) -> list[Path]:
    """Regenerate the generated files of a source tree.

    Args:
        tree: The root of the source tree that the running packages belong to.

    Returns:
        The files whose content changed.

    Raises:
        ValueError: The running packages are not those of `tree`, or a prototype changes the C signature of a function
            in the golden interface.
    """
    if headers.INCLUDE_DIR.resolve() != (tree / "diopi_proto" / "include").resolve():
        raise ValueError(
            f"the packages that run are those of {headers.INCLUDE_DIR.parent.parent}, not of {tree.resolve()}; "
            "run `python -m diopi_test refresh` in the clone"
        )
    new = {
        tree / GOLDEN: _golden_interface(tree),
        tree / README: _readme_with_counts(tree),
        tree / DEPENDENCIES: render_dependencies(),
        **{tree / SCHEMAS / name: text for name, text in render_schemas().items()},
    }
    written = [path for path, text in new.items() if path.read_text("utf-8") != text]
    old_headers = _header_texts()
    headers.write(headers.INCLUDE_DIR)
    for path in written:
        path.write_text(new[path], "utf-8")
    return [*written, *(path for path, text in _header_texts().items() if old_headers.get(path) != text)]


def _header_texts() -> dict[Path, str]:
    """Return the text of every committed file of the include folder, by path."""
    return {path: path.read_text("utf-8") for path in sorted(headers.INCLUDE_DIR.rglob("*.*"))}


def _golden_interface(tree: Path) -> str:
    """Return the golden interface with records of new functions; records of known functions stay unchanged.

    Raises:
        ValueError: A prototype has another C signature than the record of its function.
    """
    lines = {json.loads(line)["name"]: line for line in (tree / GOLDEN).read_text("utf-8").splitlines()}
    all_prototypes = {**runtime_prototypes(), **prototypes()}
    for header, names in header_order().items():
        for name in names:
            record = _interface_record(header, all_prototypes[name])
            if name not in lines:
                lines[name] = json.dumps(record)
            elif _signature_of_record(json.loads(lines[name])) != _signature_of_record(record):
                raise ValueError(
                    f"{name}: the prototype has another C signature than {GOLDEN}, which released libraries rely on; "
                    "restore the signature, or change the record by hand if the change is intended"
                )
    return "".join(f"{lines[name]}\n" for names in header_order().values() for name in names)


def _interface_record(header: str, prototype: Prototype) -> dict[str, Any]:
    """Return the record of a function in the golden interface."""
    parameters = [{"type": parameter.c_type, "name": parameter.c_name} for parameter in prototype.parameters]
    return {"header": header, "name": prototype.name, "returns": prototype.returns, "params": parameters}


def _signature_of_record(record: dict[str, Any]) -> tuple[str, str, list[tuple[str, str]]]:
    """Return the header, the return type, and the types and names of the parameters of a record, for comparison."""
    return record["header"], record["returns"], [(p["type"], p["name"]) for p in record["params"]]


def _readme_with_counts(tree: Path) -> str:
    """Return the README with the current numbers of functions."""
    functions, vendor = prototypes(), find_vendor("jax_cpu")
    references = sum(find_reference(name) is not None for name in functions)
    cases = sum(bool(select_cases(name, "full")) for name in functions)
    implementations = sum(map(vendor.has, functions))
    sentence = (
        f"Of the {len(functions)} functions, {references} have a reference, {cases} have cases and {implementations} "
        "have an implementation in `jax_cpu`."
    )
    text = (tree / README).read_text("utf-8")
    text = re.sub(r"\d+(?= operators that a framework calls)", str(len(functions)), text)
    return re.sub(r"Of the \d+ functions, .*? implementation in `jax_cpu`\.", sentence, text)
