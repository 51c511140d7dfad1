"""Run the cases named on standard input: `python -m diopi_engine.conformance.worker LIBRARY FOLDER DESCRIPTOR`.

For each case the worker writes a line of JSON with the verdict and the detail to the file descriptor. It does not use
standard output, because the library may print there.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from diopi_engine.conformance.all_cases import CASES
from diopi_engine.conformance.bench import EngineBench, NotApplicableError, NotConformingError
from diopi_engine.conformance.client import EngineClient, FailedCallError

T = TypeVar("T")
"""The fixture that cases receive."""


def run_named_cases(cases: Mapping[str, Callable[[T], Any]], bench: T, descriptor: int) -> None:
    """Run the cases named on standard input until the input ends; write each verdict to the descriptor."""
    with os.fdopen(descriptor, "w") as replies:
        for name in sys.stdin:
            print(json.dumps(run_case(cases[name.strip()], bench)), file=replies, flush=True)


def run_case(case: Callable[[T], Any], bench: T) -> tuple[str, str]:
    """Run a case and return its verdict (`passed`, `failed` or `not_run`) with the reason or a remark."""
    try:
        return "passed", case(bench) or ""
    except NotConformingError as error:
        return "failed", str(error)
    except NotApplicableError as error:
        return "not_run", str(error)
    except FailedCallError as error:
        return "failed", f"a call that is legal fails: {error}"


if __name__ == "__main__":
    from diopi_engine.conformance.models.as_engines import CASES as NETWORKS

    run_named_cases(
        {**CASES, **NETWORKS}, EngineBench(EngineClient(Path(sys.argv[1])), Path(sys.argv[2])), int(sys.argv[3])
    )
