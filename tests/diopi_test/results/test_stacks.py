"""A stack is separated from the message of its case, and begins with the vendor's frame."""

from __future__ import annotations

import pytest
from shown_reports import CRASH

from diopi_test.results.stacks import describe_vendor_frame, split_stack


def test_the_innermost_frame_of_the_vendor_comes_first() -> None:
    reason, lines = split_stack(CRASH)
    assert reason == "the vendor was ended by SIGSEGV (segmentation fault)"
    assert lines[:3] == [
        'File "/home/me/chip/pooling.py", line 11 in launch_kernel',
        "",
        "Fatal Python error: Segmentation fault",
    ]
    assert len(lines) == 8 and not any("Extension modules" in line for line in lines)


@pytest.mark.parametrize(
    "path",
    [
        "/site-packages/diopi_impl/vendor.py",
        "/src/diopi_impl/native/call.py",
        "/src/diopi_test/execution/call.py",
        "/usr/lib/python3.11/ctypes/__init__.py",
        "<string>",
    ],
)
def test_frames_of_the_project_and_of_python_are_not_the_vendors(path: str) -> None:
    text = f'ended; its output: Fatal Python error: x\n  File "{path}", line 1 in f\n  File "{{vendor}}", line 2 in g'
    for vendor in ("/src/diopi_impl/jax_cpu/pool.py", "/venv/lib/python3.11/site-packages/chip/pool.py"):
        assert split_stack(text.format(vendor=vendor))[1][0] == f'File "{vendor}", line 2 in g'


def test_the_vendors_frame_is_described_without_its_place() -> None:
    assert describe_vendor_frame(CRASH) == "in launch_kernel of pooling.py"
    python_only = 'ended; its output: x\n  File "/usr/lib/python3.11/ctypes/__init__.py", line 1 in call'
    assert describe_vendor_frame(python_only) == ""


def test_messages_of_one_line_stay_as_they_are() -> None:
    assert split_stack("out is wrong; its output: a line") == ("out is wrong; its output: a line", ())
    assert split_stack("ended; its output: one\ntwo") == ("ended", ["one", "two"])
