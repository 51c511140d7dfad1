"""Conformance to NVDLA's driver: cases that a library must pass, whoever made it.

`cases` and `memory_cases` have those of IRuntime, `layer_cases` those of the portability layer, `all_cases` has them
all. `bench` has what they need, `client` calls the library, `networks` makes the loadables.
"""
