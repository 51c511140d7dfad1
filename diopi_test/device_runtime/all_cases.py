"""All cases of the device runtime in the order in which they are run."""

from diopi_test.device_runtime import (  # noqa: F401 - each enters its cases
    copy_cases,
    device_cases,
    event_cases,
    lifetime_cases,
    memory_cases,
    stream_cases,
    thread_cases,
)
from diopi_test.device_runtime.bench import CASES

__all__ = ["CASES"]
