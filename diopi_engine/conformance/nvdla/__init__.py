"""Conformance to NVDLA's driver: cases that a library must pass, whoever made it.

`cases` has those of IRuntime, `layer_cases` those of the portability layer, `bench` what they need, `client` calls the
library, `networks` makes the loadables.
"""
