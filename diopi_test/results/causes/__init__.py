"""Causes: failed cases of a run, grouped by what they have in common.

The groups are a pure function of the records in a log. Therefore the logs of older runs can be grouped again.
"""
