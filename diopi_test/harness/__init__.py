"""A run of many cases: the pytest plugin, the runner, verdicts put together, records, claims and the report.

Imports `execution` and `checks`, and what is stored.
"""
