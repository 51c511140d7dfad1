"""Conformance to NVDLA's driver: cases that every library must pass.

`cases`, `memory_cases` and `result_cases` contain the cases of IRuntime, `layer_cases` those of the portability layer,
and `all_cases` all of them. `bench` has their fixture, `client` calls the library, and `networks` creates the
loadables.
"""
