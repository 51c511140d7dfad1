"""A compiled vendor that does nothing, and a vendor based on it that returns the expected results.

The null vendor exports every operator of the interface; each returns success at once. Its device is the device of the
tests' vendor in C: host memory, with work that is executed when it is enqueued.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from time import process_time
from typing import Any, final

from diopi_impl import BaseVendor
from diopi_impl.native import NativeVendor
from diopi_proto import headers
from diopi_proto.interface import prototypes
from diopi_proto.types import Error
from diopi_test.oracle.records import BaselineCase
from diopi_test.quality.stub_vendor import StubVendor
from diopi_test.quality.stub_vendor import vendor as stub
from lib_rt import Context, Device

DEVICE = Path(__file__).parents[1] / "tests" / "vendors" / "c"
"""The folder of the tests' vendor in C."""


def source() -> str:
    """Return the C source of all operators."""
    includes = [f"#include <diopi/{header}>" for header in headers.names()]
    bodies = [f"{headers.declaration(prototype)} {{ return diopiSuccess; }}" for prototype in prototypes().values()]
    return "\n".join((*includes, *bodies, ""))


def build(folder: Path) -> Path:
    """Compile the null vendor in `folder` and return the path of the library."""
    operators, library = folder / "operators.c", folder / "libdiopi_impl.so"
    operators.write_text(source())
    command = ["cc", "-O2", "-w", "-shared", "-fPIC", f"-I{headers.INCLUDE_DIR}", f"-I{DEVICE}"]
    subprocess.run([*command, operators, DEVICE / "device.c", "-o", library], check=True)
    return library


@final
class ReplayingVendor(BaseVendor):
    """A vendor that calls the null vendor as the suite does, then writes the expected results to the result tensors.

    Attributes:
        seconds: CPU seconds that writing the results took, which are not a cost of the suite.
        calls: the number of calls so far.
    """

    def __init__(self, library: Path) -> None:
        super().__init__("replaying", "1")
        self.seconds = 0.0
        self.calls = 0
        self._native = NativeVendor(library)
        self._stub: StubVendor = stub

    def take_case(self, case: BaselineCase) -> None:
        """Receive the case of the next call."""
        self._stub.take_case(case)

    def has(self, name: str) -> bool:
        """Return whether the null vendor exports a function."""
        return self._native.has(name)

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        """Call the null vendor, then write the expected results, and return the error code."""
        self.calls += 1
        self._native.call(name, context, *arguments)
        start = process_time()
        code = self._stub.call(name, context, *arguments)
        self.seconds += process_time() - start
        return code

    def last_error(self) -> str:
        """Return the message of the latest failed call."""
        return self._stub.last_error()

    def open_device(self) -> Device:
        """Return the device of the null vendor, whose memory this process can address."""
        device = self._native.open_device()
        device.host_addressable = True
        return device
