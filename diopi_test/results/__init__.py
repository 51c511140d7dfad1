"""The results of a run: the log, the records in it, and the report that is derived from them.

The package reads and writes results. It starts no vendor and selects no cases, so that results can also be evaluated on
another machine, or years later.
"""
