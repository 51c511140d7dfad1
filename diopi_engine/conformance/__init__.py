"""Conformance to the interfaces of engines: cases that every library must pass.

- `cases`: the cases of HanGuangRT; `bench` and `networks` have their fixtures and engines.
- `nvdla`: the same for NVDLA's driver.
- `interfaces`: detects the interfaces of a library.
- `worker`: runs cases in a separate process.
- `run`: starts workers and returns the verdict of each case.
"""
