"""Run the cases named on standard input: `python -m diopi_test.device_runtime.worker LIBRARY DESCRIPTOR`.

For each case the worker writes a line of JSON with the verdict and the message to the file descriptor. It does not use
standard output, because the library may print there. The first line says whether the library was loaded.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from diopi_test.device_runtime.all_cases import CASES
from diopi_test.device_runtime.bench import RuntimeBench, RuntimeViolationError, UnsupportedCaseError
from diopi_test.execution.verdict import Verdict
from lib_rt.device_runtime_client import (
    DeviceRuntimeClient,
    MissingFunctionError,
    NoDeviceRuntimeError,
    RuntimeCallError,
)

Bench = TypeVar("Bench")
"""What the cases of a family receive."""


def run_case(name: str, bench: RuntimeBench) -> tuple[Verdict, str]:
    """Run a case and return its verdict with the reason, which is empty if it passed."""
    return judge(CASES[name], bench)


def judge(case: Callable[[Bench], object], bench: Bench) -> tuple[Verdict, str]:
    """Run a case of any family on its bench and return its verdict with the reason, which is empty if it passed."""
    try:
        case(bench)
    except RuntimeViolationError as error:
        return Verdict.failed, str(error)
    except RuntimeCallError as error:
        return Verdict.failed, f"a valid call fails: {error}"
    except MissingFunctionError as error:
        return Verdict.not_implemented, f"{error.function} is missing"
    except UnsupportedCaseError as error:
        return Verdict.unsupported, str(error)
    return Verdict.passed, ""


def start(library: Path) -> RuntimeBench:
    """Return the bench of a library whose runtime was started; raise NoDeviceRuntimeError if this is impossible."""
    client = DeviceRuntimeClient(library)
    try:
        if client.has("initializeVendor"):
            client.call("initializeVendor")
        if not client.has("getDeviceCount") or client.call("getDeviceCount") < 1:
            raise NoDeviceRuntimeError(f"{library} has no device")
    except RuntimeCallError as error:
        raise NoDeviceRuntimeError(f"{library} does not start: {error}") from error
    return RuntimeBench(client)


def main(library: str, descriptor: str) -> None:
    """Run cases until standard input ends; the module's docstring describes the arguments and the messages."""
    with os.fdopen(int(descriptor), "w") as replies:
        try:
            bench = start(Path(library))
        except NoDeviceRuntimeError as error:
            print(json.dumps(str(error)), file=replies, flush=True)
            return
        print(json.dumps(""), file=replies, flush=True)
        for line in sys.stdin:
            print(json.dumps(run_case(line.strip(), bench)), file=replies, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
