"""A bench for the cases of HanGuangRT on the reference runtime, with any networks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from diopi_engine.conformance.bench import EngineBench
from diopi_engine.conformance.client import EngineClient
from diopi_engine.runtime import calls
from diopi_engine.runtime.devices import devices
from diopi_engine.runtime.objects import ExecutionContext


@pytest.fixture
def bench(library: Path, locks: Path, folder: Path) -> Iterator[EngineBench]:
    """Yield a bench with the networks in `folder`; remove what a failed case has left."""
    bench = EngineBench(EngineClient(library), folder)
    bench.client.call("hgDeviceSetCurrent", 0)
    yield bench
    for context in calls.HANDLES.all(ExecutionContext):
        context.execution.close()
    calls.HANDLES._objects.clear()
    for device in devices():
        with device.cores.exclusive_access():
            device.cores.end_use(device.cores.used)
            device.cores.release(device.cores.retained)
