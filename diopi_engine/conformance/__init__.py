"""Conformance to the interfaces of engines: cases that a library must pass, whoever made it.

`cases` has those of HanGuangRT, `bench` what they need, `networks` the engines they run; `nvdla` has the same for
NVDLA's driver. `interfaces` says which a library has, `worker` runs cases in a process of its own, and `run` starts
workers and says how each case ended.
"""
