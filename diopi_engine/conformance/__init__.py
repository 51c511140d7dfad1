"""Conformance to the interfaces of engines: cases that every library must pass.

- `cases`, `description_cases` and `result_cases`: the cases of HanGuangRT, which `all_cases` lists. `bench` has their
  fixture, and `networks` and `tensor_networks` their engines.
- `nvdla`: the same for NVDLA's driver.
- `interfaces`: detects the interfaces of a library.
- `worker`: runs cases in a separate process.
- `run`: starts workers and returns the verdict of each case.
"""
