"""Conformance to HanGuangRT: cases that a library must pass, whoever made it.

`cases` has them, `bench` what they need, `networks` the engines they run, `worker` runs them in a process of its own,
and `run` starts workers and says how each case ended.
"""
