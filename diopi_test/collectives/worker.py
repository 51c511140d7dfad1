"""Run cases as one rank: `python -m diopi_test.collectives.worker LIBRARY RANK RANKS DESCRIPTOR`.

The worker reads the names of cases, and the values of other ranks, from standard input. It writes lines of JSON to the
file descriptor, because the library may print to standard output: `["ready", text]` says whether the library was
loaded, and `["exchange", value]` asks for the values of all ranks. `["end"]` announces that the process ends on
purpose, and `["done", verdict, message]` ends a case.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from diopi_test.collectives.all_cases import CASES
from diopi_test.collectives.bench import CollectivesBench
from diopi_test.device_runtime import worker as runtime_worker
from lib_rt.collectives_client import CollectivesClient
from lib_rt.device_runtime_client import NoDeviceRuntimeError


def create_bench(library: Path, rank: int, ranks: int, send: Callable[..., None]) -> CollectivesBench:
    """Load a library, start its device runtime and choose a device.

    Args:
        library: the library under test.
        rank: the rank of this process, which also determines its device.
        ranks: the number of ranks.
        send: writes a message, whose parts are the arguments.

    Returns:
        The bench of the cases.

    Raises:
        NoDeviceRuntimeError: if the library can't be loaded or has no device.
    """

    def exchange(value: Any) -> list[Any]:
        """Send a value to the process that started the ranks, and return the values of all ranks."""
        send("exchange", value)
        values: list[Any] = json.loads(sys.stdin.readline() or "[]")
        return values

    client = CollectivesClient(library)
    runtime = runtime_worker.start(library)
    if runtime.client.has("setDevice"):
        runtime.call("setDevice", rank % runtime.device_count)
    return CollectivesBench(
        client=client, runtime=runtime, rank=rank, ranks=ranks, exchange=exchange, announce_end=lambda: send("end")
    )


def main(library: str, rank: str, ranks: str, descriptor: str) -> None:
    """Run cases until standard input ends; the module's docstring describes the arguments and the messages."""
    with os.fdopen(int(descriptor), "w") as replies:

        def send(*message: object) -> None:
            """Write a line."""
            print(json.dumps(message), file=replies, flush=True)

        try:
            bench = create_bench(Path(library), int(rank), int(ranks), send)
        except NoDeviceRuntimeError as error:
            send("ready", str(error))
            return
        send("ready", "")
        for line in iter(sys.stdin.readline, ""):
            send("done", *runtime_worker.judge(CASES[line.strip()], bench))


if __name__ == "__main__":
    main(*sys.argv[1:])
