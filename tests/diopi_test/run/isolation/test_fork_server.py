"""The parent's view of a worker."""

import os
from collections.abc import Iterator
from socket import socketpair

import pytest

from diopi_test.run.isolation.fork_server import WorkerProcess

STACK = "Fatal Python error: Aborted\n\nCurrent thread 0x0:\n"


@pytest.fixture
def output() -> Iterator[tuple[int, WorkerProcess]]:
    """Return the file for the output of a process, and the process."""
    file = os.memfd_create("output")
    reader, writer = socketpair()
    process = WorkerProcess(1, reader, os.dup(file))
    with writer:
        yield file, process
    process.close()
    os.close(file)


@pytest.mark.parametrize("frames", [0, 10, 300])
@pytest.mark.parametrize("lines", [0, 10, 3000])
def test_a_long_stack_does_not_hide_what_the_vendor_wrote(
    output: tuple[int, WorkerProcess], lines: int, frames: int
) -> None:
    file, process = output
    os.write(file, b"of an earlier case")
    start = os.fstat(file).st_size
    os.write(file, ("x" * 79 + "\n").encode() * lines + b"the tile does not fit\n")
    os.write(file, (STACK + '  File "/a/long/path/to/a/package/module.py", line 1 in function\n' * frames).encode())
    output = process.output_since(start)
    assert "the tile does not fit" in output
    assert "Fatal Python error: Aborted" in output
    assert "earlier" not in output
    assert len(output) < 9000


def test_discarded_output_is_empty(output: tuple[int, WorkerProcess]) -> None:
    file, process = output
    os.write(file, b"some")
    assert process.output_since(4) == process.output_since(1000) == ""
