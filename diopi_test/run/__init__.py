"""A run of many cases: selection, the workers and their processes, the runner, the recorder, and the pytest plugin.

The runner and the pytest plugin share `collection`, `selection`, `isolation` and `session`. The runner writes every
event to a log, whose format and records the chapter `results` defines.
"""
