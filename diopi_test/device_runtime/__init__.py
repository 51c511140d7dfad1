"""Conformance of a device runtime: cases that every implementation of the prototypes in `diopi_proto` must pass.

- `bench` has the fixture of the cases, which calls a library with `lib_rt.device_runtime_client`.
- `device_cases`, `memory_cases`, `copy_cases`, `stream_cases`, `event_cases`, `thread_cases` and `lifetime_cases`: the
  cases, which `all_cases` lists.
- `worker`: runs cases in a separate process. `run`: starts workers and returns the verdict of each case.
"""
