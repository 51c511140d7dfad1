"""`python -m diopi_engine.conformance.worker LIBRARY FOLDER DESCRIPTOR`: runs the cases that are named on its input.

Of each it writes a line of JSON, verdict and detail, to the file descriptor: the library may print what it likes.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from diopi_engine.conformance import cases  # noqa: F401 - it enters the cases
from diopi_engine.conformance.bench import CASES, Bench, NotApplicableError, NotConformingError
from diopi_engine.conformance.client import Client, FailedCallError


def main() -> None:
    """Run cases until there are no more."""
    bench = Bench(Client(Path(sys.argv[1])), Path(sys.argv[2]))
    with os.fdopen(int(sys.argv[3]), "w") as answers:
        for name in sys.stdin:
            print(json.dumps(verdict_of(name.strip(), bench)), file=answers, flush=True)


def verdict_of(name: str, bench: Bench) -> tuple[str, str]:
    """How a case ended: `passed`, `failed` or `not_run`, and why."""
    try:
        CASES[name](bench)
    except NotConformingError as error:
        return "failed", str(error)
    except NotApplicableError as error:
        return "not_run", str(error)
    except FailedCallError as error:
        return "failed", f"a call that is legal fails: {error}"
    return "passed", ""


if __name__ == "__main__":
    main()
